/* The guard of a sandbox below a changed root. It remains root and runs nothing of the sandbox. It
   makes the files, starts the supervisor, and opens files of the image for it, which may have any
   mode. At the end, and if the owner is killed, it ends every process of the sandbox's user and
   removes the files. */

#define _GNU_SOURCE
#include "chroot/chroot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOTS 0  /* descriptors of the first message: the directory of all sandboxes' directories, */
#define GRANTS 1  /* and a socket on which the owner sends directories to copy files from */
#define LOCKS 0  /* of the second one: the user's and the directory's locks, which last while a copy
                    is open, */
#define RETAINED 2  /* the directory of shared directories to use again, */
#define LAYERS 3  /* and the layers, the topmost first */
#define TREE "root"
#define ENDING_MS 300  /* for a supervisor to end properly after its owner */
#define PASS_MS 50
#define READ_FLAGS (O_PATH | O_NOFOLLOW | O_DIRECTORY)
#define REMOVE -1  /* in place of flags */
#define SHOW_AGAIN -2

int guard_link = -1;
static int tree = -1;  /* the root directory */
static int source = -1;  /* a directory from which the owner lets the supervisor copy files */
static struct message first, second;
static bool is_damaged;  /* a directory that sandboxes share may lack files */

static size_t count_layers(void) {
    const struct json *programs = json_get(sandbox.spec, "programs");
    size_t count = programs ? programs->length : 0;
    return count < second.count - LAYERS ? count : second.count - LAYERS;
}

/* --------------------------------------------------------------- opening files */
static ssize_t send_with_fd(const struct iovec *parts, size_t count, int fd) {
    union { char buffer[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } ancillary = {0};
    struct msghdr header = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
    if (fd >= 0) {
        header.msg_control = ancillary.buffer;
        header.msg_controllen = sizeof ancillary.buffer;
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                              .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(guard_link, &header, MSG_NOSIGNAL);
}

static ssize_t receive_with_fd(int socket, void *into, size_t size, int *fd, int flags) {
    union { char buffer[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } ancillary;
    struct iovec part = {into, size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = ancillary.buffer,
                            .msg_controllen = sizeof ancillary.buffer};
    ssize_t got;
    *fd = -1;
    while ((got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags)) < 0 && errno == EINTR) {}
    struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&header);
    if (c && c->cmsg_type == SCM_RIGHTS) memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return got;
}

/* In the supervisor: send a request, and set the error number of the answer. */
static int ask_guard(int directory, const char *path, int asked) {
    int code = EIO, fd = -1;
    struct iovec parts[] = {{&asked, sizeof asked}, {(char *)path, strlen(path) + 1}};
    if (send_with_fd(parts, 2, directory) < 0
        || receive_with_fd(guard_link, &code, sizeof code, &fd, 0) != sizeof code)
        return errno = EIO, -1;
    return errno = code, fd;
}

/* In the supervisor: let the guard open a file for reading. */
int open_as_guard(int directory, const char *path, int flags) {
    return ask_guard(directory, path, flags & READ_FLAGS);
}

/* In the supervisor: let the guard remove a directory with everything in it. */
int remove_as_guard(const char *path) {
    ask_guard(-1, path, REMOVE);
    return errno ? -1 : 0;
}

/* In the supervisor: let the guard show a directory of this machine again, where nothing is. */
int show_again_as_guard(const char *path) {
    ask_guard(-1, path, SHOW_AGAIN);
    return errno ? -1 : 0;
}

/* In the guard: remove a directory of the sandbox's user with everything in it. */
static int remove_in_tree(char *path) {
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name || !strcmp(name, ".") || !strcmp(name, "..")) return errno = EINVAL, -1;
    if (slash) *slash = 0;
    struct stat info;
    int parent = open_exact(tree, slash ? path : "", DIRECTORY, 0), result = -1;
    if (parent >= 0 && !fstat(parent, &info)) {
        if (info.st_uid != sandbox.user) errno = EPERM;  /* part of a shared directory */
        else if ((result = remove_all(parent, name))) is_damaged = true;
    }
    int code = errno;
    if (parent >= 0) close(parent);
    errno = code;
    return result;
}

/* In the guard: take the directories that the owner has sent, of which the last one counts. */
static void receive_grants(void) {
    char kind;
    int fd;
    while (receive_with_fd(first.fds[GRANTS], &kind, 1, &fd, MSG_DONTWAIT) > 0) {
        if (source >= 0) close(source);
        source = fd;
    }
}

static bool is_same(int fd, const struct stat *info) {
    struct stat other;
    return fd >= 0 && !fstat(fd, &other) && other.st_dev == info->st_dev
        && other.st_ino == info->st_ino;
}

/* In the guard: return whether the supervisor may read everything below a directory. An error in the
   supervisor must not give it the files of this machine. */
static bool is_granted(int directory) {
    struct stat info;
    if (directory < 0 || fstat(directory, &info)) return false;
    receive_grants();
    if (is_same(tree, &info) || is_same(source, &info)) return true;
    for (size_t i = 0; i < count_layers(); i++)
        if (is_same(second.fds[LAYERS + i], &info)) return true;
    return false;
}

/* In the guard: open what the supervisor asks for, below the directory that it sends, remove it, or show
   it again. */
static void answer_request(void) {
    static struct { int flags; char path[1 << 16]; } asked;
    int directory, fd = -1, code = EINVAL;
    ssize_t got = receive_with_fd(guard_link, &asked, sizeof asked, &directory, 0);
    bool is_whole = got > (ssize_t)sizeof asked.flags && !((char *)&asked)[got - 1];
    if (is_whole && asked.flags == REMOVE) {
        code = remove_in_tree(asked.path) ? errno : 0;
    } else if (is_whole && asked.flags == SHOW_AGAIN) {
        code = show_again(tree, second.fds[RETAINED], sandbox.spec, asked.path) ? errno : 0;
    } else if (is_whole && !is_granted(directory)) {
        code = EPERM;
    } else if (is_whole) {
        int flags = (asked.flags & READ_FLAGS) | O_RDONLY | O_NONBLOCK | O_NOCTTY;
        if (flags & O_PATH) flags &= ~(O_NONBLOCK | O_NOCTTY);
        fd = open_exact(directory, asked.path, flags, 0);
        code = fd < 0 ? errno : 0;
    }
    send_with_fd(&(struct iovec){&code, sizeof code}, 1, fd);
    if (fd >= 0) close(fd);
    if (directory >= 0) close(directory);
}

/* ------------------------------------------------------------------------- end */
/* Kill all processes with a sandbox's two user ids at once. They cannot start others meanwhile,
   because the kernel starts no process for one that is being killed. This process has the ids
   itself for that moment, in a way that they may not signal it, and without them as its saved id:
   it starts no process for it, which the engine's limit of processes could prevent. */
static int kill_user(uid_t user) {
    if (user < 1000) return errno = EINVAL, -1;  /* never those of root */
    if (setresuid(user + 1, user, 0)) return -1;
    if (geteuid() == user) kill(-1, SIGKILL);
    if (setresuid(0, 0, 0)) _exit(1);
    return 0;
}

/* End everything in the sandbox. All its processes descend from the supervisor, so their orphans
   become children of this process. */
static void end_processes(pid_t supervisor) {
    const struct timespec pause = {0, PASS_MS * 1000000};
    kill(supervisor, SIGKILL);
    for (;;) {
        pid_t ended;
        kill_user(sandbox.user);
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {}
        if (ended < 0) return;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        if (!waitpid(-1, NULL, WNOHANG)) nanosleep(&pause, NULL);
    }
}

/* Kill the processes of the user with this number, and its supervisor, which a killed guard has
   left. */
void end_user(const char *number) {
    _exit(kill_user((uid_t)strtoul(number, NULL, 10)) ? 1 : 0);
}

/* Serve the supervisor until it or the owner has ended. */
static void watch(pid_t supervisor) {
    int pidfd = pidfd_of(supervisor);
    long long deadline = 0;  /* none, until the owner ends */
    struct pollfd polled[] = {{.fd = pidfd, .events = POLLIN},
                              {.fd = guard_link, .events = POLLIN},
                              {.fd = sandbox.owner, .events = POLLRDHUP},
                              {.fd = first.fds[GRANTS], .events = POLLIN},
                              {.fd = pidfd_of(getppid()), .events = POLLIN}};
    while (pidfd >= 0) {
        int ready = poll(polled, 5, time_until(deadline));
        if (!ready || (ready > 0 && polled[0].revents)) break;
        if (deadline && milliseconds() >= deadline) break;  /* requests do not put it off */
        if (ready > 0 && polled[1].revents & POLLIN) answer_request();
        else if (ready > 0 && polled[1].revents) polled[1].fd = -1;
        if (ready > 0 && (polled[2].revents || polled[4].revents)) {
            polled[2].fd = polled[4].fd = -1;
            deadline = milliseconds() + ENDING_MS;
        }
        if (ready > 0 && polled[3].revents) receive_grants();
        if (ready > 0 && polled[3].revents & (POLLHUP | POLLERR)) polled[3].fd = -1;
    }
    end_processes(supervisor);
}

/* ----------------------------------------------------------------------- start */
/* Make the root directory. `programs` of the message has a true value for each layer with a directory
   of files to link, which follows the layers. */
static int make_root(void) {
    if (second.count < LAYERS) return errno = EINVAL, fail("%zu descriptors", second.count);
    int home = openat(first.fds[ROOTS], json_text(first.body, "home"), DIRECTORY | O_NOFOLLOW);
    bool made = home >= 0 && !mkdirat(home, TREE, 0755);
    int root = made ? openat(home, TREE, DIRECTORY | O_NOFOLLOW) : -1;
    if (home >= 0) close(home);
    if (root < 0) return fail("the root directory");
    int programs[MOST_FDS];
    size_t layers = count_layers(), next = LAYERS + layers, i = 0;
    const struct json *given = json_get(sandbox.spec, "programs");
    for (const struct json *v = given ? given->first : NULL; v && i < layers; v = v->next)
        programs[i++] = v->number && next < second.count ? second.fds[next++] : -1;
    while (i < layers) programs[i++] = -1;
    return build_tree(root, second.fds[RETAINED], sandbox.spec, second.fds + LAYERS, layers, programs)
        ? -1 : root;
}

static pid_t start_supervisor(int root) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return fail("socketpair");
    pid_t pid = fork();
    if (pid < 0) return fail("fork");
    guard_link = pair[!pid];
    close(pair[!!pid]);
    if (!pid) {
        for (size_t i = 0; i < first.count; i++) close(first.fds[i]);
        for (size_t i = 0; i < LAYERS; i++) close(second.fds[i]);
        for (size_t i = LAYERS + count_layers(); i < second.count; i++) close(second.fds[i]);
        supervise_chroot(root, second.fds + LAYERS, count_layers());
    }
    return pid;
}

/* Make the files, and serve the supervisor to its end. Returns the root directory or -1. */
static int guard_sandbox(void) {
    sandbox.spec = second.body;
    filter_key = strtoul(json_text(sandbox.spec, "key"), NULL, 10);
    sandbox.user = (uid_t)json_number(sandbox.spec, "user");
    sandbox.own_user = sandbox.user + 1;
    /* what a killed guard left */
    tree = kill_user(sandbox.user) ? fail("the processes of user %u", sandbox.user) : make_root();
    pid_t supervisor = tree < 0 ? -1 : start_supervisor(tree);
    if (supervisor < 0) send_handshake(false);
    else watch(supervisor);
    return tree;
}

void run_guard(const char *descriptor) {
    sandbox.owner = atoi(descriptor);
    sandbox.in_container = sandbox.in_chroot = true;
    fcntl(sandbox.owner, F_SETFD, FD_CLOEXEC);
    setsid();
    prctl(PR_SET_NAME, "intercode", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (!receive(sandbox.owner, &first) || first.count <= GRANTS) _exit(1);
    /* The owner makes the sandbox's directory before the second message. If it is killed meanwhile,
       only the directory is to be removed. */
    int root = receive(sandbox.owner, &second) ? guard_sandbox() : -1;
    shutdown(sandbox.owner, SHUT_RDWR);
    close(sandbox.owner);
    if (root >= 0 && !is_damaged) retain_shared(root, second.fds[RETAINED], sandbox.spec);
    remove_all(first.fds[ROOTS], json_text(first.body, "home"));
    _exit(0);
}
