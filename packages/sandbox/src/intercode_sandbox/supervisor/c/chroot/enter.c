/* The supervisor of a sandbox below a changed root: how it enters, and what it does differently from
   that of a container, of which it shares the rest. */

#define _GNU_SOURCE
#include "chroot/chroot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SCRIPT "bash"  /* in /dev; a shell names itself by it in messages */

static pid_t guard;
static int dev = -1;  /* the directory /dev, which only the supervisor's own user may change */

/* `less`: by how much the first of the two limits is lower, which counts, than the second one. */
static int limit_self(int resource, const char *name, rlim_t less) {
    rlim_t count = (rlim_t)json_number(json_get(sandbox.spec, "limits"), name);
    struct rlimit now;
    if (syscall(SYS_prlimit64, 0, resource, NULL, &now)) return -1;
    if (now.rlim_max < count) count = now.rlim_max;
    now.rlim_max = count;
    now.rlim_cur = count > less ? count - less : 0;
    return (int)syscall(SYS_prlimit64, 0, resource, &now, NULL);
}

/* In a new process: become the user of commands, under its limits; the filter does not let the
   supervisor set those of another process. The C library's functions would do this for all threads
   of the parent, with which it shares memory. A program cannot be executed by a process that has
   become one too many, which the kernel finds out before it counts that process. */
int take_command_user(void) {
    if (limit_self(RLIMIT_NPROC, "processes", 1) || limit_self(RLIMIT_NOFILE, "open_files", 0))
        return -1;
    if (syscall(SYS_setresuid, sandbox.user, sandbox.user, sandbox.user, 0L, 0L, filter_key))
        return -1;
    return limit_self(RLIMIT_NPROC, "processes", 0);
}

/* End when the guard ends. The kernel forgets this whenever a user id changes. */
static void end_with_guard(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != guard) _exit(1);
}

static int drop_root(void) {
    drop_capabilities(0);
    if (drop_inheritable()) return -1;
    if (setgroups(0, NULL) || setresgid(sandbox.user, sandbox.user, sandbox.user)
        || setresuid(sandbox.own_user, sandbox.user, sandbox.own_user))
        return fail("changing to user %u", sandbox.user);
    end_with_guard();
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? fail("prctl") : 0;
}

static int enter(int root, const int *layers, size_t count) {
    guard = getppid();
    sandbox.isolation.network = -1;
    sandbox.isolation.oom_score_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if ((sandbox.proc = open("/proc", DIRECTORY)) < 0) return fail("/proc");
    prctl(PR_SET_NAME, "intercode", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (fchdir(root) || chroot(".") || (sandbox.root = open("/", DIRECTORY)) < 0)
        return fail("chroot");
    if ((dev = open_exact(sandbox.root, "dev", DIRECTORY, 0)) < 0) return fail("/dev");
    set_image_trees(layers, count);
    if (drop_root() || watch_children()) return -1;
    if (json_bool(sandbox.spec, "deterministic") && personality(ADDR_NO_RANDOMIZE) < 0)
        errno = 0;  /* the engine's filter forbids it */
    const struct json *limits = json_get(sandbox.spec, "limits");
    if (require_limit(RLIMIT_NPROC, "processes", (unsigned long)json_number(limits, "processes"))
        || set_limits(limits, NO_PROCESS_LIMIT, EXTRA_DESCRIPTORS)
        || install_filter(json_text(sandbox.spec, "filter")) || confine_by_landlock()
        || build_index(sandbox.root, false))
        return -1;
    record_priority();
    return 0;
}

void supervise_chroot(int root, const int *layers, size_t count) {
    send_handshake(!enter(root, layers, count));
    close(root);
    serve();
    _exit(0);
}

/* --------------------------------------------------------------------- scripts */
/* Change /dev. Other files are the commands'. */
static void act_as_own_user(bool on) {
    int code = errno;
    syscall(SYS_setfsuid, on ? sandbox.own_user : sandbox.user, 0L, 0L, 0L, 0L, filter_key);
    if (!on) end_with_guard();
    errno = code;
}

void remove_script(void) {
    act_as_own_user(true);
    unlinkat(dev, SCRIPT, 0);
    act_as_own_user(false);
}

static int create_script(const struct message *m) {
    unlinkat(dev, SCRIPT, 0);
    if (!m->count) {
        if (mkfifoat(dev, SCRIPT, 0644)) return -1;
        return openat(dev, SCRIPT, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    }
    int fd = openat(dev, SCRIPT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ssize_t sent = fd < 0 ? -1 : 1;
    if (m->count) lseek(m->fds[0], 0, SEEK_SET);
    while (sent > 0) sent = sendfile(fd, m->fds[0], NULL, (size_t)1 << 30);
    if (sent < 0 && fd >= 0) close(fd);
    return sent < 0 ? -1 : fd;
}

/* Let a shell read a script by the name of a file, as it would read one of its descriptors below
   /dev/fd: the content of the given file, or else what the owner writes to the answered pipe. */
int write_script(const struct message *m, int *result_fd) {
    act_as_own_user(true);
    int fd = create_script(m);
    act_as_own_user(false);
    if (fd < 0) return fail("/dev/" SCRIPT);
    if (m->count) return close(fd);
    *result_fd = fd;
    return 0;
}

/* Return whether a path is in /dev. With mounts, that would be another file system. */
bool is_outside_listing(const char *path) {
    return sandbox.in_chroot && !strncmp(path, "dev", 3) && (!path[3] || path[3] == '/');
}
