import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** Makes, shows and deletes rules and a user. */
final class JavaGoverning {
    private static final List<ScramMechanism> MECHANISMS =
        List.of(ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512);
    private static final int ITERATIONS = 5_000;
    private static final long PAUSE_MS = 20;

    private JavaGoverning() {
    }

    static void govern(String bootstrap, String name) throws Exception {
        try (Admin client = Admin.create(Settings.of(bootstrap))) {
            rules(client, name);
            user(client, name);
        }
    }

    private static void rules(Admin client, String name) throws Exception {
        var pattern = new ResourcePattern(ResourceType.TOPIC, name, PatternType.PREFIXED);
        String principal = "User:" + name;
        var rules = List.of(AclOperation.READ, AclOperation.WRITE).stream()
            .map(operation -> new AclBinding(pattern,
                new AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW)))
            .toList();
        client.createAcls(rules).all().get();
        var wanted = new AclBindingFilter(ResourcePatternFilter.ANY, new AccessControlEntryFilter(
            principal, null, AclOperation.ANY, AclPermissionType.ANY));
        show("rule", described(client, wanted, rules.size()));
        show("deleted", client.deleteAcls(List.of(wanted)).all().get());
        show("left", described(client, wanted, 0));
    }

    /** As many rules: a broker may hear of a change a moment later. */
    private static Collection<AclBinding> described(
        Admin client, AclBindingFilter wanted, int count) throws Exception {
        while (true) {
            Collection<AclBinding> found = client.describeAcls(wanted).values().get();
            if (found.size() == count) {
                return found;
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private static void user(Admin client, String name) throws Exception {
        for (ScramMechanism mechanism : MECHANISMS) {
            client.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                name, new ScramCredentialInfo(mechanism, ITERATIONS), "secret"))).all().get();
        }
        described(client, name, MECHANISMS.size()).infos().stream()
            .sorted(Comparator.comparing(ScramCredentialInfo::mechanism))
            .forEach(info ->
                System.out.println("user\t" + info.mechanism() + "\t" + info.iterations()));
        for (ScramMechanism mechanism : MECHANISMS) {
            client.alterUserScramCredentials(
                List.of(new UserScramCredentialDeletion(name, mechanism))).all().get();
        }
        System.out.println("gone\t" + described(client, name, 0).error().getClass().getSimpleName());
    }

    private record User(List<ScramCredentialInfo> infos, Throwable error) {
    }

    /** A user of as many mechanisms, without any an error: a broker may hear of a change a moment later. */
    private static User described(Admin client, String name, int count) throws Exception {
        while (true) {
            User found;
            try {
                var one = client.describeUserScramCredentials(List.of(name)).description(name).get();
                found = new User(one.credentialInfos(), null);
            } catch (ExecutionException error) {
                found = new User(List.of(), error.getCause());
            }
            if (found.infos().size() == count) {
                return found;
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private static void show(String word, Collection<AclBinding> rules) {
        rules.stream().sorted(Comparator.comparing(rule -> rule.entry().operation())).forEach(rule -> {
            var pattern = rule.pattern();
            var entry = rule.entry();
            System.out.println(String.join("\t", word, pattern.resourceType().name(),
                pattern.name(), pattern.patternType().name(), entry.principal(), entry.host(),
                entry.operation().name(), entry.permissionType().name()));
        });
    }
}
