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
        show("rule", client.describeAcls(wanted).values().get());
        show("deleted", client.deleteAcls(List.of(wanted)).all().get());
        show("left", client.describeAcls(wanted).values().get());
    }

    private static void user(Admin client, String name) throws Exception {
        for (ScramMechanism mechanism : MECHANISMS) {
            client.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                name, new ScramCredentialInfo(mechanism, ITERATIONS), "secret"))).all().get();
        }
        var users = List.of(name);
        client.describeUserScramCredentials(users).all().get().get(name).credentialInfos().stream()
            .sorted(Comparator.comparing(ScramCredentialInfo::mechanism))
            .forEach(info ->
                System.out.println("user\t" + info.mechanism() + "\t" + info.iterations()));
        for (ScramMechanism mechanism : MECHANISMS) {
            client.alterUserScramCredentials(
                List.of(new UserScramCredentialDeletion(name, mechanism))).all().get();
        }
        try {
            client.describeUserScramCredentials(users).description(name).get();
        } catch (ExecutionException error) {
            System.out.println("gone\t" + error.getCause().getClass().getSimpleName());
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
