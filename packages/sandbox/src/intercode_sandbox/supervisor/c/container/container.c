/* Supervises the container in which it runs as PID 1, so that no other process there can signal or
   trace it. The container ends with the supervisor, and the supervisor ends when its owner
   disconnects.

   It has no more rights than the commands that it starts. So it restores the container's files
   instead of mounting a new root, and it finds changes by scanning the files. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_PID 100 /* first process number, the same in every container */

/* Exit when the owner is gone, in a second thread: a process of the container can block the
   first thread by stopping a child that has not executed its program yet. */
static void *watch_owner(void *unused) {
    struct pollfd owner = {.fd = sandbox.owner, .events = POLLRDHUP};
    /* time for the first thread to end the container properly */
    const struct timespec moment = {0, 300000000};
    (void)unused;
    while (poll(&owner, 1, -1) < 0 || !(owner.revents & (POLLRDHUP | POLLHUP | POLLERR))) {}
    nanosleep(&moment, NULL);
    _exit(0);
}

static int create_watch_thread(pthread_attr_t *attributes, pthread_t *thread) {
    if (pthread_attr_init(attributes) || pthread_attr_setstacksize(attributes, 1 << 16)
        || pthread_create(thread, attributes, watch_owner, NULL))
        return fail("starting a thread");
    return 0;
}

/* Start the second thread with all signals blocked. Otherwise it would receive the signals that the
   first thread blocks while it starts a program, and they would end PID 1. */
static int start_owner_watch(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = create_watch_thread(&attributes, &thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* ---------------------------------------------------------------------- set-up */
/* Hide the command line, and forbid processes of the same user to inspect this one. */
static void hide_process(char **arguments) {
    sandbox.isolation.oom_score_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NAME, "init", 0, 0, 0);
    for (char **each = arguments; *each; each++) memset(*each, 0, strlen(*each));
    memcpy(arguments[0], "init", sizeof "init");
}

static int connect_owner(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, fail("%s", path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) return fail("%s", path);
    return fd;
}

static void close_standard_streams(void) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(nothing, fd);
    close(nothing);
}

int watch_children(void) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGCHLD);
    sigprocmask(SIG_BLOCK, &only, NULL);
    sandbox.init_fd = signalfd(-1, &only, SFD_CLOEXEC | SFD_NONBLOCK);
    return sandbox.init_fd < 0 ? fail("signalfd") : 0;
}

/* Install the seccomp filter, which the owner sends as hexadecimal digits. */
int install_filter(const char *digits) {
    size_t length = strlen(digits) / 2;
    unsigned char *bytes = malloc(length + 1);
    int result = 0;
    for (size_t i = 0; bytes && i < length; i++)
        if (sscanf(digits + 2 * i, "%2hhx", &bytes[i]) != 1) result = (errno = EINVAL, -1);
    struct sock_fprog program = {(unsigned short)(length / sizeof(struct sock_filter)),
                                 (void *)bytes};
    if (!bytes || result || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        result = fail("installing the seccomp filter");
    free(bytes);
    return result;
}

/* Set the root directory's owner and mode to those of the image, because engines do not. */
static int own_root(uid_t uid) {
    struct stat info;
    mode_t mode = stat_in_image("", "", &info) ? 0755 : info.st_mode & 07777;
    return fchmod(sandbox.root, mode) || fchown(sandbox.root, uid, uid) ? fail("/") : 0;
}

/* If the engine started this process as root, link /dev/bash to the descriptor of a shell's script,
   give the root directory to the sandbox's user, and become that user. Nothing else runs yet. */
static int drop_root(uid_t uid) {
    if (geteuid() || !uid) return 0;
    if (symlink("/proc/self/fd/62", "/dev/bash") && errno != EEXIST) return fail("/dev/bash");
    if (own_root(uid) || setgroups(0, NULL) || setresgid(uid, uid, uid)
        || setresuid(uid, uid, uid))
        return fail("changing to user %u", uid);
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Use up process numbers, because engines use different amounts at the start. The second thread,
   which /proc shows, and the first command then have the same numbers in each container. */
static int skip_pids(pid_t number) {
    pid_t pid;
    do {
        if ((pid = vfork()) == 0) _exit(0);
        if (pid < 0) return fail("vfork");
        waitpid(pid, NULL, 0);
    } while (pid < number);
    return 0;
}

/* Compare what the engine has mounted with what the owner has checked. */
static int check_mounts(const struct json *list) {
    for (const struct json *v = list ? list->first : NULL; v; v = v->next) {
        const char *path = v->first->next->text;
        int fd = open_in_root(sandbox.root, path, O_PATH | O_NOFOLLOW, 0);
        if (fd < 0 || !has_identity(fd, v->first->next->next->text))
            return fail("%s cannot be shown", v->first->text);
        close(fd);
    }
    return 0;
}

static int set_up(const struct message *m) {
    size_t lowers = (size_t)json_number(sandbox.spec, "lowers");
    size_t copies = (size_t)json_number(sandbox.spec, "copies");
    const char *filter = json_text(sandbox.spec, "filter");
    sandbox.isolation.own_network = json_bool(sandbox.spec, "own_network");
    if (lowers + copies != m->count) return errno = EINVAL, fail("%zu descriptors", m->count);
    if ((sandbox.root = open("/", DIRECTORY)) < 0) return fail("/");
    set_image_trees(m->fds, lowers);
    if (drop_root((uid_t)json_number(sandbox.spec, "uid"))
        || check_mounts(json_get(sandbox.spec, "mounts")))
        return -1;
    if (record_network(&sandbox.isolation) || watch_children()) return -1;
    if (skip_pids(FIRST_PID - 1)) return -1;
    if (json_bool(sandbox.spec, "deterministic") && personality(ADDR_NO_RANDOMIZE) < 0)
        return fail("personality");
    size_t first = json_bool(sandbox.spec, "own_user_namespace") ? ALL_LIMITS : NO_LIMITS_BY_USER;
    if (set_limits(json_get(sandbox.spec, "limits"), first, EXTRA_DESCRIPTORS)
        || (*filter && (install_filter(filter) || confine_by_landlock())))
        return -1;
    if (build_index(sandbox.root, lowers > 0)) return -1;
    if (copies && copy_paths(m->fds[lowers], json_get(sandbox.spec, "paths"))) return -1;
    for (size_t i = lowers; i < m->count; i++) close(m->fds[i]);
    record_priority();
    return start_owner_watch();
}

void supervise_container(char **arguments) {
    struct message first;
    sandbox.in_container = true;
    if (chdir("/") || (sandbox.owner = connect_owner(arguments[1])) < 0) {
        fprintf(stderr, "intercode: cannot connect to the owner: %s\n", error_message());
        _exit(1);
    }
    hide_process(arguments);
    close_standard_streams();
    if (!receive(sandbox.owner, &first)) _exit(1);
    sandbox.spec = first.body;
    send_handshake(!set_up(&first));
    serve();
    _exit(0);
}
