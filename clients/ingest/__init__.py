"""Events from where they already are, a Kafka topic, a Redis stream or a NATS JetStream, into a learner, each once."""
