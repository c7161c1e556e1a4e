/* What a box needs that does not depend on what it will hold. See box/blank.py. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int enter_namespaces(struct blank *blank) {
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  /* or the kernel would not let us write our own id map */
    if (unshared(NAMESPACES | (blank->own_network ? CLONE_NEWNET : 0))) return -1;
    if (write_to("/proc/self/setgroups", "deny")) return -1;
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (write_to("/proc/self/uid_map", map)) return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    if (write_to("/proc/self/gid_map", map)) return -1;
    blank->sacrifice = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return blank->sacrifice < 0 ? failed("/proc/self/oom_score_adj") : 0;
}

static int loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return failed("socket");
    int result = ioctl(s, SIOCSIFFLAGS, &request) ? failed("lo") : 0;
    close(s);
    return result;
}

/* Counters that tell whether a box's own network was ever used. */
static char *counters(const struct blank *blank) {
    static const char *const files[] = {"dev", "snmp", "snmp6", "netstat"};
    struct text all = {0};
    put(&all, "", 0);
    for (size_t i = 0; blank->own_network && i < 4; i++) {
        char part[1 << 13];
        int fd = openat(blank->network, files[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;  /* no IPv6 */
        for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;) put(&all, part, (size_t)got);
        close(fd);
    }
    return all.bytes;
}

/* For a blank whose network was made by others: remember how it was. */
int remember_network(struct blank *blank) {
    blank->network = open("/proc/self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (blank->network < 0) return failed("/proc/self/net");
    blank->unused = counters(blank);
    return 0;
}

bool network_used(const struct blank *blank) {
    if (!blank->own_network) return true;  /* it is shared with the machine */
    char *now = counters(blank);
    bool used = strcmp(now, blank->unused) != 0;
    free(now);
    return used;
}

/* CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE NET_RAW SYS_CHROOT
   AUDIT_WRITE SETFCAP: what a container's root has, less what could reach further. */
static void confine(void) {
    static const unsigned long kept = 1UL << 0 | 1UL << 1 | 1UL << 3 | 1UL << 4 | 1UL << 5 | 1UL << 6
        | 1UL << 7 | 1UL << 10 | 1UL << 13 | 1UL << 18 | 1UL << 29 | 1UL << 31;
    for (unsigned long capability = 0; capability < 64; capability++)
        if (!(kept >> capability & 1) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) return;
}

int make_blank(struct blank *blank, const struct json *order, int program) {
    const char *stage = get_text(order, "stage");
    blank->own_network = get_bool(order, "own_network");
    blank->fdinfo = open("/proc/self/fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (blank->fdinfo < 0) return failed("/proc/self/fdinfo");
    if (enter_namespaces(blank)) return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (blank->own_network && loopback_up()) return -1;
    if (remember_network(blank)) return -1;
    if (start_init(blank, get_bool(order, "plain"), program)) return -1;
    confine();
    if (prepare(stage, blank->own_network)) return -1;
    return mount_proc(blank, stage);
}
