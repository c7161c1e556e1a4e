/* The guard of a sandbox in a directory of the machine, and the supervisor that it starts. The guard
   runs nothing of the sandbox. At the end, and if the owner is killed, it ends every process of the
   sandbox and removes the directory. */

#define _GNU_SOURCE
#include "landlock/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORIES 0  /* descriptors of the first message: the directory of all sandboxes', */
#define TREE 1  /* that of this one, with a lock that lasts while a copy is open, */
#define LAYERS 2  /* and the layers of which it was made, the topmost first */
#define ENDING_MS 300  /* for a supervisor to end properly after its owner */
#define PASS_MS 20
#define MOST_PENDING_SIGNALS_OF_USER (1 << 15)  /* together with those outside of the sandbox */

static pid_t guard;

/* ------------------------------------------------------------------ supervisor */
/* The guard was killed, and nothing else would end the commands. */
static void end_domain(int number) {
    (void)number;
    kill(-1, SIGKILL);
    _exit(1);
}

static int end_with_guard(void) {
    struct sigaction action = {.sa_handler = end_domain};
    if (sigaction(SIGTERM, &action, NULL) || prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0))
        return fail("prctl");
    return getppid() == guard ? 0 : (errno = ESRCH, fail("the guard"));
}

/* Commands of root would get the capabilities of the bounding set. */
static int drop_privileges(void) {
    if (!geteuid() && setgroups(0, NULL)) errno = 0;  /* a container may forbid it */
    drop_capabilities(0);
    if (drop_inheritable()) return -1;
    if (geteuid() || prctl(PR_CAPBSET_READ, 0, 0, 0, 0) != 1) return 0;
    return errno = EPERM, fail("dropping capabilities");
}

/* Record the directory's path, which /proc shows before the paths of files. */
static int record_root(int root) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", root);
    ssize_t length = readlink(link, path, sizeof path);
    if (length <= 0) return fail("%s", link);
    sandbox.root = root;
    sandbox.root_path = strndup(path, (size_t)length);
    sandbox.root_length = (size_t)length;
    return sandbox.root_path ? 0 : -1;
}

/* Give the guard the calls that it is to answer. */
static int send_listener(int link) {
    const struct text body = {"{}", 2, 2};
    int listener = install_attribute_filter();
    int result = listener < 0 ? -1 : reply(link, &body, &listener, 1) ? fail("the guard") : 0;
    if (listener >= 0) close(listener);
    close(link);
    return result;
}

static int set_up(const struct message *m, int link) {
    sandbox.isolation.network = -1;
    sandbox.isolation.oom_score_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (sandbox.isolation.oom_score_fd < 0) return fail("/proc/self/oom_score_adj");
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (enter_own_domain() || end_with_guard()) return -1;
    set_image_trees(m->fds + LAYERS, m->count - LAYERS);
    if (drop_privileges() || watch_children()) return -1;
    if (lower_limit(RLIMIT_SIGPENDING, MOST_PENDING_SIGNALS_OF_USER)
        || lower_limit(RLIMIT_MSGQUEUE, MOST_QUEUED_BYTES)
        || set_limits(json_get(sandbox.spec, "limits"), NO_LIMITS_BY_USER, EXTRA_DESCRIPTORS)
        || build_command_rules(sandbox.spec, sandbox.root)
        || install_filter(json_text(sandbox.spec, "filter")) || send_listener(link)
        || build_index(sandbox.root, false))
        return -1;
    record_priority();
    return 0;
}

/* Start the supervisor, and receive the descriptor with the calls to answer, or -1. */
static pid_t start_supervisor(const struct message *m, int *listener) {
    int pair[2];
    struct message given;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return fail("socketpair");
    pid_t pid = fork();
    if (pid < 0) return fail("fork");
    close(pair[!!pid]);
    if (pid) {
        *listener = receive(pair[0], &given) && given.count ? fcntl(given.fds[0], F_DUPFD_CLOEXEC, 0) : -1;
        if (*listener >= 0) free_message(&given);
        close(pair[0]);
        return pid;
    }
    send_handshake(!set_up(m, pair[1]));
    close(m->fds[DIRECTORIES]);
    serve();
    _exit(0);
}

/* ---------------------------------------------------------------------- guard */
/* Enter a domain. It is checked, because `kill` would otherwise end every process of this user. */
static int enter_checked_domain(void) {
    pid_t owner = getppid();
    if (enter_own_domain()) return -1;
    if (!kill(owner, 0) || errno != EPERM) return errno = EPERM, fail("Landlock confines no signals");
    return 0;
}

/* Kill all processes of this domain at once: the kernel starts no process for one that is being killed.
   All descend from this process, so their orphans become its children. */
static void end_processes(void) {
    const struct timespec pause = {0, PASS_MS * 1000000};
    for (;;) {
        pid_t ended;
        kill(-1, SIGKILL);
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {}
        if (ended < 0) return;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        if (!waitpid(-1, NULL, WNOHANG)) nanosleep(&pause, NULL);
    }
}

/* Answer calls until the supervisor or the owner has ended. */
static void watch(pid_t supervisor, int listener) {
    int pidfd = pidfd_of(supervisor);
    long long deadline = 0;  /* none, until the owner ends */
    struct pollfd polled[] = {{.fd = pidfd, .events = POLLIN},
                              {.fd = sandbox.owner, .events = POLLRDHUP},
                              {.fd = listener, .events = POLLIN},
                              {.fd = pidfd_of(getppid()), .events = POLLIN}};
    while (pidfd >= 0) {
        int ready = poll(polled, 4, time_until(deadline));
        if (!ready || (ready > 0 && polled[0].revents)) break;
        if (deadline && milliseconds() >= deadline) break;  /* requests do not put it off */
        if (ready > 0 && (polled[1].revents || polled[3].revents)) {
            polled[1].fd = polled[3].fd = -1;
            deadline = milliseconds() + ENDING_MS;
        }
        if (ready > 0 && polled[2].revents & POLLIN) answer_attribute_call(listener, supervisor);
        else if (ready > 0 && polled[2].revents) polled[2].fd = -1;
    }
    end_processes();
}

void run_landlock_guard(const char *descriptor) {
    struct message first;
    sandbox.owner = atoi(descriptor);
    sandbox.in_container = sandbox.in_domain = true;
    sandbox.user = geteuid();
    fcntl(sandbox.owner, F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_NAME, "intercode", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    guard = getpid();
    if (!receive(sandbox.owner, &first)) _exit(1);
    sandbox.spec = first.body;
    filter_key = strtoul(json_text(sandbox.spec, "key"), NULL, 10);
    if (first.count < LAYERS) _exit(1);
    int listener = -1;
    bool entered = !record_root(first.fds[TREE]) && !enter_checked_domain();
    pid_t supervisor = entered ? start_supervisor(&first, &listener) : -1;
    if (supervisor < 0) send_handshake(false);
    else watch(supervisor, listener);
    shutdown(sandbox.owner, SHUT_RDWR);
    close(sandbox.owner);
    remove_all(first.fds[DIRECTORIES], json_text(sandbox.spec, "home"));
    _exit(0);
}
