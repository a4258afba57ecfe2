// The JDK's own HTTP client as it comes: it offers h2c with every first request.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

public class ForeignClient {
    private static String call(HttpClient client, String base, String method, String path, HttpRequest.BodyPublisher body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + path)).header("Content-Type", "application/json").method(method, body).build();
        HttpResponse<String> reply = client.send(request, HttpResponse.BodyHandlers.ofString());
        return reply.statusCode() + " " + reply.body();
    }

    private static HttpRequest.BodyPublisher text(String body) {
        return HttpRequest.BodyPublishers.ofString(body);
    }

    public static void main(String[] arguments) throws Exception {
        String base = arguments[0], event = "{\"features\": [\"a\"], \"label\": \"x\", \"feedback_id\": \"java\"}";
        System.out.println(call(HttpClient.newHttpClient(), base, "PUT", "/v1/learners/java", text("{\"task\": \"multiclass\"}")));
        System.out.println(call(HttpClient.newHttpClient(), base, "POST", "/v1/learners/java/feedback", text(event)));
        HttpClient kept = HttpClient.newHttpClient();
        System.out.println(call(kept, base, "POST", "/v1/learners/java/feedback", text(event)));
        // A body whose length is not known, in chunks; and a large one.
        byte[] large = new byte[4_000_000];
        Arrays.fill(large, (byte) ' ');
        byte[] predict = "{\"features\": [\"a\"], \"remember\": false}".getBytes(StandardCharsets.UTF_8);
        System.arraycopy(predict, 0, large, 0, predict.length);
        HttpRequest.BodyPublisher chunks = HttpRequest.BodyPublishers.ofInputStream(() -> new java.io.ByteArrayInputStream(large));
        System.out.println(call(kept, base, "POST", "/v1/learners/java/predict", chunks));
        System.out.println(call(kept, base, "GET", "/v1/learners/nobody", HttpRequest.BodyPublishers.noBody()));
    }
}
