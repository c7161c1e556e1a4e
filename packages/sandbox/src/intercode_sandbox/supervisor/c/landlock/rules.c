/* The rules of Landlock for the commands of a sandbox, and the domains of its other processes. */

#define _GNU_SOURCE
#include "landlock/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* rights of Landlock */
#define EXECUTE (1 << 0)
#define WRITE_FILE (1 << 1)
#define READ_FILE (1 << 2)
#define READ_DIR (1 << 3)
#define MAKE_CHAR (1 << 6)
#define MAKE_BLOCK (1 << 11)
#define TRUNCATE (1 << 14)
#define IOCTL_DEV (1 << 15)
#define ALL_FILE_RIGHTS ((1 << 16) - 1)
#define TCP_RIGHTS 3  /* to bind and to connect */
#define ALL_SCOPES 3  /* abstract sockets and signals */
#define BENEATH_PATH 1

#define SAFE_DESCRIPTOR 64  /* above all descriptor numbers of commands */

struct rules { uint64_t files, network, scopes; };
struct path_rule { uint64_t rights; int32_t directory; } __attribute__((packed));

static int command_rules = -1;

static int create_rules(const struct rules *rules) {
    int fd = (int)syscall(SYS_landlock_create_ruleset, rules, sizeof *rules, 0L);
    return fd < 0 ? fail("landlock_create_ruleset") : fd;
}

static int allow(int rules, int fd, uint64_t rights) {
    const struct path_rule rule = {rights, fd};
    return (int)syscall(SYS_landlock_add_rule, (long)rules, (long)BENEATH_PATH, &rule, 0L);
}

/* Allow rights below each path of a list that exists; of a file, only those that a file can have. */
static int allow_paths(int rules, const struct json *paths, uint64_t rights) {
    const uint64_t of_files = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    for (const struct json *v = paths ? paths->first : NULL; v; v = v->next) {
        struct stat info;
        int fd = open(v->text, O_PATH | O_CLOEXEC);
        if (fd < 0) continue;
        bool is_directory = !fstat(fd, &info) && S_ISDIR(info.st_mode);
        int result = allow(rules, fd, is_directory ? rights : rights & of_files);
        close(fd);
        if (result) return fail("a rule for %s", v->text);
    }
    return 0;
}

/* Make the rules that commands get: `readable` and `listed` of the specification are paths of the
   machine whose content, or only whose names, they may read, and `devices` those that they may use.
   They may do everything in `tree` but make devices. */
int build_command_rules(const struct json *spec, int tree) {
    const struct rules all = {ALL_FILE_RIGHTS, json_bool(spec, "own_network") ? TCP_RIGHTS : 0,
                              ALL_SCOPES};
    int rules = create_rules(&all);
    if (rules < 0) return -1;
    if (allow_paths(rules, json_get(spec, "readable"), EXECUTE | READ_FILE | READ_DIR)
        || allow_paths(rules, json_get(spec, "listed"), READ_DIR)
        || allow_paths(rules, json_get(spec, "devices"), READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV))
        return -1;
    if (allow(rules, tree, ALL_FILE_RIGHTS & ~(uint64_t)(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)))
        return fail("a rule for the sandbox's directory");
    command_rules = fcntl(rules, F_DUPFD_CLOEXEC, SAFE_DESCRIPTOR);
    close(rules);
    return command_rules < 0 ? fail("fcntl") : 0;
}

/* Enter a domain in which this process can signal nothing outside. It may still open all files. */
int enter_own_domain(void) {
    const struct rules scopes = {.scopes = ALL_SCOPES};
    int rules = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? fail("prctl") : create_rules(&scopes);
    if (rules < 0) return -1;
    int result = syscall(SYS_landlock_restrict_self, (long)rules, 0L) ? fail("landlock") : 0;
    close(rules);
    return result;
}

static int limit_self(int resource, long long limit) {
    struct rlimit now;
    if (syscall(SYS_prlimit64, 0, resource, NULL, &now)) return -1;
    if (now.rlim_max > (rlim_t)limit) now.rlim_max = (rlim_t)limit;
    now.rlim_cur = now.rlim_max;
    return (int)syscall(SYS_prlimit64, 0, resource, &now, NULL);
}

/* In a new process: take the limits that the supervisor does not have and the filter does not let it
   set for another process, and the rules of commands. The kernel counts all processes of the user. */
int enter_command_domain(void) {
    if (limit_self(RLIMIT_NOFILE, json_number(json_get(sandbox.spec, "limits"), "open_files"))
        || limit_self(RLIMIT_NPROC, json_number(sandbox.spec, "process_limit")))
        return -1;
    return (int)syscall(SYS_landlock_restrict_self, (long)command_rules, 0L);
}
