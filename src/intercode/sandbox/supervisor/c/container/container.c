/* The keeper of a container, which it is in, as PID 1: nothing in there can signal or trace it. The
   container ends with it, and it ends when its owner goes away.

   It has no more rights than what it starts. So the container's files are put back as they were
   instead of being laid out anew, and what changed is found by a look at all of them. */

#define _GNU_SOURCE
#include "container/container.h"

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

#define SPARE_FILES (1 << 20) /* descriptors that the keeper may have beyond what a command may */
#define FIRST_NUMBER 100 /* of a process, the same in every container */

/* ------------------------------------------------------------------- requests */
/* Put the files back, or have those of the box behind the first descriptor. */
static int do_refile(const struct message *m) {
    if (put_back()) return -1;
    return m->count ? copy_paths(m->fds[0], get(m->body, "changed")) : 0;
}

/* The machine's network is no other one in a container that is started anew. */
static int do_renew(const struct message *m) {
    if (do_end_all()) return -1;
    if (box.blank.own_network && network_used(&box.blank))
        return errno = EBUSY, failed("its network was used");
    return clear_leftovers() || do_refile(m) ? -1 : 0;
}

static int do_touched(struct text *out) {
    put_format(out, ", \"paths\": [");
    int result = write_touched(out);
    put(out, "]", 1);
    return result;
}

/* Root may enter / whatever its mode is; here that takes the right of its owner. */
static void may_enter(void) {
    struct stat info;
    if (!fstat(box.root, &info) && (info.st_mode & 0700) != 0700)
        fchmod(box.root, (info.st_mode | 0700) & 07777);
}

int asked_of_container(const char *what, const struct message *m, struct text *out, int *given) {
    static const char *const refused[] = {"picture", "plant", "seal"};
    may_enter();
    if (!strcmp(what, "size")) return write_size(out);
    if (!strcmp(what, "touched")) return do_touched(out);
    if (!strcmp(what, "refile")) return do_refile(m);
    if (!strcmp(what, "renew")) return do_renew(m);
    if (!strcmp(what, "upper"))
        return (*given = fcntl(box.root, F_DUPFD_CLOEXEC, 0)) < 0 ? -1 : 0;
    if (!strcmp(what, "breached"))
        return put_format(out, ", \"breach\": \"%s\"", last_breach()), 0;
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(what, refused[i])) return errno = EOPNOTSUPP, failed("%s in a container", what);
    if (!strcmp(what, "spawn")) something_started();
    return NOT_OURS;
}

/* End with all that runs, and only when it has gone. */
void end_container(void) {
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
    _exit(0);
}

/* A second thread looks whether the owner is still there: what runs here can hold up the first one, by
   stopping a child that has not executed yet. */
static void *watch_owner(void *unused) {
    struct pollfd owner = {.fd = box.owner, .events = POLLRDHUP};
    const struct timespec moment = {0, 300000000};  /* for the first to end it, and see it gone */
    (void)unused;
    while (poll(&owner, 1, -1) < 0 || !(owner.revents & (POLLRDHUP | POLLHUP | POLLERR))) {}
    nanosleep(&moment, NULL);
    _exit(0);
}

static int watching(pthread_attr_t *attributes, pthread_t *thread) {
    if (pthread_attr_init(attributes) || pthread_attr_setstacksize(attributes, 1 << 16)
        || pthread_create(thread, attributes, watch_owner, NULL))
        return failed("a thread");
    return 0;
}

/* The thread takes no signal: one that the first has blocked, as it does while it starts a program,
   would else be given to it and end PID 1, which nothing in here can do otherwise. */
static int owner_watched(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = watching(&attributes, &thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* --------------------------------------------------------------------- set-up */
/* Show no one how this was started, and let none of the same id look into it. */
static void hide(char **arguments) {
    box.blank.sacrifice = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NAME, "init", 0, 0, 0);
    for (char **each = arguments; *each; each++) memset(*each, 0, strlen(*each));
    memcpy(arguments[0], "init", sizeof "init");
}

static int connected(const char *path) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof where.sun_path) return errno = ENAMETOOLONG, failed("%s", path);
    strcpy(where.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&where, sizeof where)) return failed("%s", path);
    return fd;
}

static void without_standard_files(void) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(nothing, fd);
    close(nothing);
}

static int children_seen(void) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGCHLD);
    sigprocmask(SIG_BLOCK, &only, NULL);
    box.init_fd = signalfd(-1, &only, SFD_CLOEXEC | SFD_NONBLOCK);
    return box.init_fd < 0 ? failed("signalfd") : 0;
}

/* The filter on what commands ask of the kernel, told as hexadecimal digits. */
static int filtered(const char *digits) {
    size_t length = strlen(digits) / 2;
    unsigned char *bytes = malloc(length + 1);
    int result = 0;
    for (size_t i = 0; bytes && i < length; i++)
        if (sscanf(digits + 2 * i, "%2hhx", &bytes[i]) != 1) result = (errno = EINVAL, -1);
    struct sock_fprog program = {(unsigned short)(length / sizeof(struct sock_filter)), (void *)bytes};
    if (!bytes || result || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        result = failed("the filter of system calls");
    free(bytes);
    return result;
}

/* The root directory as the image has it, which engines do not see to, but for its user. */
static int owned(uid_t uid) {
    struct stat told;
    mode_t mode = stat_pristine("", "", &told) ? 0755 : told.st_mode & 07777;
    return fchmod(box.root, mode) || fchown(box.root, uid, uid) ? failed("/") : 0;
}

/* Where an engine has started this as root, /dev gets the link that a shell reads its script by, the
   root directory becomes the user's, and this an ordinary process, before there is any other. */
static int become(uid_t uid) {
    if (geteuid() || !uid) return 0;
    if (symlink("/proc/self/fd/62", "/dev/bash") && errno != EEXIST) return failed("/dev/bash");
    if (owned(uid) || setgroups(0, NULL) || setresgid(uid, uid, uid)
        || setresuid(uid, uid, uid))
        return failed("to become %u", uid);
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* The kernel counts the descriptors that an id has under way, for all boxes together, and refuses more
   than the sender may have open: so the keeper may have more of them than a command. What it starts
   begins with the command's number; as it runs, it loses the right to more. */
void files_for_commands(bool only) {
    rlim_t most = (rlim_t)get_number(get(box.spec, "limits"), "open_files");
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now)) return;
    now.rlim_cur = only && most < now.rlim_max ? most : now.rlim_max;
    setrlimit(RLIMIT_NOFILE, &now);
}

void bound_files(pid_t pid) {
    struct rlimit now;
    if (prlimit(pid, RLIMIT_NOFILE, NULL, &now)) return;  /* it has ended */
    rlim_t most = (rlim_t)get_number(get(box.spec, "limits"), "open_files");
    if (now.rlim_max > most) now.rlim_max = most;
    if (now.rlim_cur > most) now.rlim_cur = most;
    prlimit(pid, RLIMIT_NOFILE, &now, NULL);
}

/* Use up the numbers that an engine's own beginning may or may not have used, so that what is begun
   next has the same in every container: the second thread, which /proc shows, and the first process. */
static int count_to(pid_t number) {
    pid_t pid;
    do {
        if ((pid = vfork()) == 0) _exit(0);
        if (pid < 0) return failed("vfork");
        waitpid(pid, NULL, 0);
    } while (pid < number);
    return 0;
}

static int set_up(const struct message *m) {
    size_t lowers = (size_t)get_number(box.spec, "lowers");
    size_t copies = (size_t)get_number(box.spec, "copies");
    const char *filter = get_text(box.spec, "filter");
    box.blank.own_network = get_bool(box.spec, "own_network");
    if (lowers + copies != m->count) return errno = EINVAL, failed("%zu descriptors", m->count);
    if ((box.root = open("/", DIRECTORY)) < 0) return failed("/");
    set_pristine(m->fds, lowers);
    if (become((uid_t)get_number(box.spec, "uid"))) return -1;
    if (remember_network(&box.blank) || children_seen()) return -1;
    if (count_to(FIRST_NUMBER - 1)) return -1;
    if (get_bool(box.spec, "steady") && personality(ADDR_NO_RANDOMIZE) < 0) return failed("personality");
    bool own = get_bool(box.spec, "own_users");
    if (limited(get(box.spec, "limits"), own, SPARE_FILES) || (*filter && filtered(filter))) return -1;
    if (make_index(box.root, lowers > 0)) return -1;
    if (copies && copy_paths(m->fds[lowers], get(box.spec, "changed"))) return -1;
    for (size_t i = lowers; i < m->count; i++) close(m->fds[i]);
    return owner_watched();
}

void keep_container(char **arguments) {
    struct message first;
    box.contained = true;
    umask(022);
    if (chdir("/") || (box.owner = connected(arguments[1])) < 0) {
        fprintf(stderr, "intercode: no owner: %s\n", reason());
        _exit(1);
    }
    hide(arguments);
    without_standard_files();
    if (!receive(box.owner, &first)) _exit(1);
    box.spec = first.body;
    welcome(!set_up(&first));
    serve();
    _exit(0);
}
