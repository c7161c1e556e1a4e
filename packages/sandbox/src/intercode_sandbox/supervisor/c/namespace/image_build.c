/* Runs a command of an image build in a sandbox with many user ids, as installing packages needs.

   images/build/multi_uid.py starts this program and maps the ids. The command is root of a user
   namespace with the capabilities that Docker gives a build, with mounts and processes of its own,
   on the machine's network. There is no seccomp filter, because the code is that of the person who
   builds the image, not of an agent.

   The owner sends the request as a message. Afterwards single letters are exchanged: M asks for
   the id maps, G says that they are written, S precedes the exit status, E an error. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)
#define RESOLVER "/etc/resolv.conf"
#define OPEN_DIRECTORIES 64
/* CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT
   MKNOD AUDIT_WRITE SETFCAP */
#define CAPABILITIES \
    (1UL << 0 | 1UL << 1 | 1UL << 3 | 1UL << 4 | 1UL << 5 | 1UL << 6 | 1UL << 7 | 1UL << 8 \
     | 1UL << 10 | 1UL << 13 | 1UL << 18 | 1UL << 27 | 1UL << 29 | 1UL << 31)

static int owner;

static void send_to_owner(char letter, const char *text) {
    struct text message = {0};
    append_format(&message, "%c%s", letter, text);
    if (send(owner, message.bytes, message.length, MSG_NOSIGNAL) < 0) _exit(1);
    free(message.bytes);
}

/* Write the files of the request to the /dev/shm of the stage. */
static int write_shared_files(const struct json *files) {
    char path[PATH_MAX];
    for (const struct json *v = files ? files->first : NULL; v; v = v->next) {
        snprintf(path, sizeof path, "dev/shm/%s", v->key);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) return fail("%s", path);
        close(fd);
        if (write_text(path, v->text)) return -1;
    }
    return 0;
}

/* Mount the machine's resolver configuration. `created`: whether a file had to be made for it. */
static int mount_resolver(bool *created) {
    struct stat info;
    char path[PATH_MAX];
    if (stat("/etc", &info) || !S_ISDIR(info.st_mode)) return 0;
    if (lstat(RESOLVER, &info)) {
        int fd = open(RESOLVER, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) return fail(RESOLVER);
        close(fd);
        *created = true;
    }
    if (stat(RESOLVER, &info) || !S_ISREG(info.st_mode)) return 0;
    if (!realpath(RESOLVER, path)) return fail(RESOLVER);
    return sys_mount("/dev/shm/resolv.conf", path, NULL, MS_BIND, NULL);
}

/* Wait for the command, and collect orphans meanwhile. Return its status as a shell does. */
static int wait_for(pid_t command) {
    for (int status;;) {
        pid_t pid = wait(&status);
        if (pid < 0 && errno != EINTR) return fail("wait");
        if (pid == command)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* Be PID 1: mount the root and run the command. */
static int run_command(const struct json *request, int *status) {
    static const int streams[] = {STDOUT_FILENO, STDERR_FILENO};
    bool created = false;
    pid_t command;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (sys_unshare(CLONE_NEWNS) || prepare_stage(json_text(request, "stage"), false, "/dev")) return -1;
    int counter = mount_own_proc(".");
    if (counter < 0) return -1;
    close(counter);
    if (write_shared_files(json_get(request, "files"))
        || mount_root_layout(&sandbox.layout, request, NULL, 0) || unmount_old_root()
        || mount_resolver(&created))
        return -1;
    drop_capabilities(CAPABILITIES);
    if (spawn(request, streams, 2, &command)) {
        dprintf(STDERR_FILENO, "%s\n", error_message());
        *status = 127;
    } else if ((*status = wait_for(command)) < 0) {
        return -1;
    }
    return created && (sys_umount(RESOLVER) || unlink(RESOLVER)) ? fail(RESOLVER) : 0;
}

/* Give a written file to root, and clear its set-id bits. An attribute replaces the set-user-ID bit of
   a file of root (images/archives/set_user_id.py); overlays hide it. */
static int normalize(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)kind;
    if (!at->level) return 0;
    if (S_ISREG(info->st_mode) && info->st_mode & S_ISUID && !info->st_uid)
        (void)!setxattr(path, "user.overlay.set-user-id", "y", 1, 0);  /* a file system may have none */
    if ((info->st_uid || info->st_gid) && lchown(path, 0, 0)) return fail("%s", path);
    if (info->st_mode & (S_ISUID | S_ISGID) && !S_ISLNK(info->st_mode)
        && chmod(path, info->st_mode & 07777 & ~(mode_t)(S_ISUID | S_ISGID)))
        return fail("%s", path);
    return 0;
}

static int run_build(const struct json *request) {
    char letter, text[PATH_MAX];
    int answer[2], status, ended;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (sys_unshare(NAMESPACES)) return -1;
    send_to_owner('M', "");
    if (recv(owner, &letter, 1, 0) != 1) _exit(1);
    if (setgroups(0, NULL) || setresgid(0, 0, 0) || setresuid(0, 0, 0))
        return fail("changing to user 0");
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  /* the change of user ended it */
    if (pipe2(answer, O_CLOEXEC)) return fail("pipe");
    pid_t init = fork();
    if (init < 0) return fail("fork");
    if (init == 0) {
        if (!run_command(request, &status)) _exit(write(answer[1], &status, sizeof status) < 0);
        send_to_owner('E', error_message());
        _exit(1);
    }
    close(answer[1]);
    ssize_t got = read(answer[0], &status, sizeof status);
    if (waitpid(init, &ended, 0) < 0) return fail("PID 1");
    if (WIFSIGNALED(ended)) return errno = ECHILD, fail("signal %d ended PID 1", WTERMSIG(ended));
    if (got != sizeof status) _exit(1);  /* PID 1 has sent the error */
    snprintf(text, sizeof text, "%s/upper", json_text(request, "upper"));
    if (nftw(text, normalize, OPEN_DIRECTORIES, FTW_PHYS)) return fail("%s", text);
    snprintf(text, sizeof text, "%d", status);
    send_to_owner('S', text);
    return 0;
}

void run_image_build(const char *descriptor) {
    struct message request;
    owner = atoi(descriptor);
    fcntl(owner, F_SETFD, FD_CLOEXEC);
    if (!receive(owner, &request)) _exit(1);
    if (run_build(request.body)) send_to_owner('E', error_message());
    _exit(0);
}
