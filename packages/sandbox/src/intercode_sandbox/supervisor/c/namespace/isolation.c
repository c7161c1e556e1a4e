/* Creates the parts of a sandbox that do not depend on the request: namespaces, PID 1, /proc,
   /dev and /sys. The launcher has this prepared ahead, so that a request only takes the layers and
   a change of root. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
/* CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE NET_RAW SYS_CHROOT
   AUDIT_WRITE SETFCAP: those of a container's root, without those that reach further */
#define CAPABILITIES \
    (1UL << 0 | 1UL << 1 | 1UL << 3 | 1UL << 4 | 1UL << 5 | 1UL << 6 | 1UL << 7 | 1UL << 10 \
     | 1UL << 13 | 1UL << 18 | 1UL << 29 | 1UL << 31)
#define CHANGE_USER (1UL << 6 | 1UL << 7)
/* each id of a sandbox with several users as itself; the first and the others are two ranges outside */
#define SAME_IDS "0 0 1\n1 1 65535"

/* A process with the rights of the launcher, to map more than one id: those of the sandbox do not
   suffice. */
static struct { pid_t pid; int start; } mapper = {.start = -1};

static int write_maps(pid_t pid, const char *users, const char *groups) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
    if (write_text(path, users)) return -1;
    snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
    return write_text(path, groups);
}

/* Start the mapper, which waits until this process has its user namespace. */
static int start_mapper(const char *users, const char *groups) {
    char letter;
    int pair[2];
    pid_t supervisor = getpid();
    if (pipe2(pair, O_CLOEXEC)) return fail("pipe");
    if ((mapper.pid = fork()) < 0) return fail("fork");
    if (mapper.pid == 0) {
        close(pair[1]);
        _exit(read(pair[0], &letter, 1) != 1 || write_maps(supervisor, users, groups));
    }
    close(pair[0]);
    mapper.start = pair[1];
    return 0;
}

static int finish_mapper(void) {
    int status = -1;
    bool started = write(mapper.start, "", 1) == 1;
    close(mapper.start);
    if (waitpid(mapper.pid, &status, 0) < 0 || !started || status)
        return errno = EPERM, fail("the id maps");
    return 0;
}

/* Become the user whose id a launcher that runs as root gives. From then on nothing distinguishes this
   process from that user's others. With maps of ids, the sandbox has other users than root. */
int become_user(const struct json *setup) {
    uid_t id = (uid_t)strtoul(json_text(setup, "user"), NULL, 10);
    sandbox.has_users = *json_text(setup, "uid_map") != 0;
    if (sandbox.has_users && start_mapper(json_text(setup, "uid_map"), json_text(setup, "gid_map")))
        return -1;
    if (id && (setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id)))
        return fail("changing to user %u", id);
    sandbox.user = geteuid();
    return 0;
}

static int map_own_id(uid_t uid, gid_t gid) {
    char map[64];
    if (write_text("/proc/self/setgroups", "deny")) return -1;
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (write_text("/proc/self/uid_map", map)) return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    return write_text("/proc/self/gid_map", map);
}

/* Return whether the kernel adds pending signals and the like to the creator of a namespace, too. */
static bool adds_up_limits(void) {
    struct utsname found;
    int major, minor;
    return !uname(&found) && sscanf(found.release, "%d.%d", &major, &minor) == 2
        && (major > 5 || (major == 5 && minor >= 14));
}

/* Bound what the kernel counts for each user, for all users of the sandbox together: enter a user
   namespace around that of the sandbox. Its only user is the creator of the inner one, to whom the
   kernel adds everything in it, and whose limits at that time are those of the sum. */
static int enter_counting_namespace(void) {
    static const struct { int resource; rlim_t most; } sums[] = {
        {RLIMIT_SIGPENDING, MOST_PENDING_SIGNALS}, {RLIMIT_MSGQUEUE, MOST_QUEUED_BYTES},
        {RLIMIT_MEMLOCK, MOST_LOCKED_BYTES},
    };
    if (sys_unshare(CLONE_NEWUSER) || finish_mapper()) return -1;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (lower_limit(sums[i].resource, sums[i].most)) return -1;
    sandbox.are_users_counted = !bound_user_counts("/proc") && adds_up_limits();
    clear_error();
    return start_mapper(SAME_IDS, SAME_IDS);
}

static int enter_namespaces(struct isolation *isolation, const struct json *gateway) {
    uid_t uid = geteuid();
    gid_t gid = getegid();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  /* required to write the id maps */
    if (sandbox.has_users && enter_counting_namespace()) return -1;
    int later = is_group_namespace_shared() ? CLONE_NEWCGROUP : 0;
    if (sys_unshare((NAMESPACES & ~later) | (isolation->own_network ? CLONE_NEWNET : 0))) return -1;
    if (sandbox.has_users ? finish_mapper() || setgroups(0, NULL) : map_own_id(uid, gid)) return -1;
    if (gateway && open_gateway(gateway)) return -1;
    isolation->oom_score_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return isolation->oom_score_fd < 0 ? fail("/proc/self/oom_score_adj") : 0;
}

static int bring_loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return fail("socket");
    int result = ioctl(s, SIOCSIFFLAGS, &request) ? fail("lo") : 0;
    close(s);
    return result;
}

/* Read the counters that show whether the sandbox's network was used. */
static char *read_network_counters(const struct isolation *isolation) {
    static const char *const files[] = {"dev", "snmp", "snmp6", "netstat"};
    struct text all = {0};
    append(&all, "", 0);
    for (size_t i = 0; isolation->own_network && i < 4; i++) {
        char part[1 << 13];
        int fd = openat(isolation->network, files[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;  /* no IPv6 */
        for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;) append(&all, part, (size_t)got);
        close(fd);
    }
    return all.bytes;
}

/* Record the network counters at the start. */
int record_network(struct isolation *isolation) {
    isolation->network = open("/proc/self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (isolation->network < 0) return fail("/proc/self/net");
    isolation->initial_counters = read_network_counters(isolation);
    return 0;
}

bool was_network_used(const struct isolation *isolation) {
    if (!isolation->own_network) return true;  /* the network is that of the machine */
    char *now = read_network_counters(isolation);
    bool used = strcmp(now, isolation->initial_counters) != 0;
    free(now);
    return used;
}

/* Remove capabilities from everything that this process executes, for good. */
void drop_capabilities(unsigned long allowed) {
    for (unsigned long capability = 0; capability < 64; capability++)
        if (!(allowed >> capability & 1) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) return;
}

/* In a sandbox with several users, let processes change their user only where everything that the
   kernel counts by user has a bound for the sandbox, too: root by system calls, and others by programs
   with a set-user-ID bit. */
int restrict_change_of_user(void) {
    const struct json *groups = json_get(sandbox.spec, "cgroups");
    bool is_bounded = sandbox.are_users_counted && groups && groups->first;
    sandbox.allows_set_user_id = is_bounded && !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    if (sandbox.has_users && !is_bounded) drop_capabilities(CAPABILITIES & ~CHANGE_USER);
    if (!sandbox.allows_set_user_id && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fail("no_new_privs");
    return 0;
}

int create_isolation(struct isolation *isolation, const struct json *setup) {
    const char *stage = json_text(setup, "stage");
    isolation->own_network = json_bool(setup, "own_network");
    isolation->fdinfo = open("/proc/self/fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (isolation->fdinfo < 0) return fail("/proc/self/fdinfo");
    if (enter_namespaces(isolation, json_get(setup, "gateway"))) return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (isolation->own_network && bring_loopback_up()) return -1;
    if (record_network(isolation)) return -1;
    /* before capabilities are dropped: it needs them to reset the pid counter */
    if (start_init(isolation, json_bool(setup, "plain"))) return -1;
    drop_capabilities(CAPABILITIES);
    if (prepare_stage(stage, isolation->own_network, json_text(setup, "devices"))) return -1;
    return mount_proc(isolation, stage);
}
