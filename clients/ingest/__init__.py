"""Sends the messages of a Kafka topic, a Redis stream or a NATS JetStream to a learner, each once."""
