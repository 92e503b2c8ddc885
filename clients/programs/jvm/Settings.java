import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** How to come in: the lines KEY=VALUE of the file that CLIENT_ACCESS names, in Java's words. */
final class Settings {
    private static final String PACKAGE = "org.apache.kafka.common.security.";

    private Settings() {
    }

    /** What every client needs; `more` are pairs of keys and values. */
    static Map<String, Object> of(String bootstrap, Object... more) {
        Map<String, Object> found = new HashMap<>();
        found.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < more.length; at += 2) {
            found.put((String) more[at], more[at + 1]);
        }
        String path = System.getenv("CLIENT_ACCESS");
        if (path != null) {
            addAccess(found, lines(path));
        }
        return found;
    }

    private static void addAccess(Map<String, Object> found, Map<String, String> told) {
        found.put("security.protocol", told.get("protocol"));
        found.put("ssl.truststore.type", "PEM");
        found.put("ssl.truststore.location", told.get("ca"));
        if (told.containsKey("keystore")) {
            found.put("ssl.keystore.type", "PEM");
            found.put("ssl.keystore.location", told.get("keystore"));
        }
        if (told.containsKey("mechanism")) {
            found.put("sasl.mechanism", told.get("mechanism"));
        }
        if (told.containsKey("user")) {
            found.put("sasl.jaas.config", PACKAGE + "scram.ScramLoginModule required username=\""
                + told.get("user") + "\" password=\"" + told.get("password") + "\";");
        }
        if (told.containsKey("token_url")) {
            String url = told.get("token_url");
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            found.put("sasl.oauthbearer.token.endpoint.url", url);
            found.put("sasl.login.callback.handler.class",
                PACKAGE + "oauthbearer.OAuthBearerLoginCallbackHandler");
            found.put("sasl.jaas.config", PACKAGE + "oauthbearer.OAuthBearerLoginModule required"
                + " clientId=\"" + told.get("client_id") + "\""
                + " clientSecret=\"" + told.get("client_secret") + "\""
                + " ssl.truststore.type=\"PEM\""
                + " ssl.truststore.location=\"" + told.get("ca") + "\";");
            found.put("sasl.login.retry.backoff.max.ms", 200L);
        }
    }

    private static Map<String, String> lines(String path) {
        Map<String, String> told = new HashMap<>();
        try {
            for (String line : Files.readAllLines(Path.of(path))) {
                int at = line.indexOf('=');
                told.put(line.substring(0, at), line.substring(at + 1));
            }
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(path, unreadable);
        }
        return told;
    }
}
