/* Starts PID 1 of a sandbox and sends it commands. PID 1 mounts /proc, which only a process of the
   namespace can do, and then collects orphans. If the supervisor ends, the kernel kills PID 1, and
   with it all processes of the sandbox. See runtime/init_program.py. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_MESSAGE (1 << 20)
#define SAFE_DESCRIPTOR 400  /* greater than every descriptor number that is passed on */
#define CONTROL 3
#define COUNTER 4
#define HARDENED_FLAGS (MS_NOSUID | MS_NODEV)

/* Make a directory of /proc read-only, or if `empty`, hide its content. Ignore a missing path. */
static int protect_path(const char *proc, const char *name, bool empty) {
    char path[4096];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", proc, name);
    if (stat(path, &found)) return 0;
    if (!empty) {
        if (!S_ISDIR(found.st_mode)) return 0;
        return sys_mount(path, path, NULL, MS_BIND | MS_REC, NULL) || make_read_only(path) ? -1 : 0;
    }
    if (S_ISDIR(found.st_mode))
        return sys_mount("tmpfs", path, "tmpfs", HARDENED_FLAGS | MS_RDONLY, "mode=555,size=4k");
    return 0;
}

/* Bound what the kernel counts for each user and for each IPC namespace, so that one sandbox cannot
   take the share of all others, which have the same user outside. */
void bound_shared_counts(const char *proc) {
    static const struct { const char *name, *most; } counts[] = {
        {"user/max_inotify_instances", "8"}, {"user/max_inotify_watches", "8192"},
        {"kernel/msgmni", "32"}, {"kernel/sem", "250 8000 32 64"},
    };
    char path[4224];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        snprintf(path, sizeof path, "%s/sys/%s", proc, counts[i].name);
        if (write_text(path, counts[i].most)) clear_error();  /* older kernels forbid some */
    }
}

/* Mount /proc below `stage`, with the host's settings read-only or hidden. This precedes the change
   of root, because the kernel allows a new /proc only while an old one is visible. Return a
   descriptor of the file with the last process number, or of /dev/null if the kernel has none. */
int mount_own_proc(const char *stage) {
    static const char *const read_only[] = {"bus", "fs", "irq", "sys"};
    static const char *const emptied[] = {"acpi", "scsi", "tty/driver"};
    static const char *const masked[] = {"kcore", "keys", "latency_stats", "timer_list",
                                         "sched_debug", "sysrq-trigger", "kmsg"};
    char proc[4096], path[4224], null[4224];
    snprintf(proc, sizeof proc, "%s/proc", stage);
    snprintf(null, sizeof null, "%s/dev/null", stage);
    if (sys_mount("proc", proc, "proc", HARDENED_FLAGS | MS_NOEXEC, NULL)) return -1;
    snprintf(path, sizeof path, "%s/sys/kernel/ns_last_pid", proc);
    int last = open(path, O_RDWR | O_CLOEXEC);
    if (last < 0) last = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (last < 0) return fail("/dev/null");
    bound_shared_counts(proc);
    for (size_t i = 0; i < 4; i++)
        if (protect_path(proc, read_only[i], false)) return -1;
    for (size_t i = 0; i < 3; i++)
        if (protect_path(proc, emptied[i], true)) return -1;
    for (size_t i = 0; i < 7; i++) {
        snprintf(path, sizeof path, "%s/%s", proc, masked[i]);
        if (!access(path, F_OK) && sys_mount(null, path, NULL, MS_BIND, NULL)) return -1;
    }
    return last;
}

/* Execute `program`, or if it is -1, serve as PID 1 here until the supervisor closes `control`. */
static void run_idle_init(int control, int counter, int program) {
    char request[16];
    ssize_t got;
    signal(SIGCHLD, SIG_IGN);
    control = fcntl(control, F_DUPFD, SAFE_DESCRIPTOR);
    counter = fcntl(counter, F_DUPFD, SAFE_DESCRIPTOR);
    if (program >= 0) program = dup3(program, COUNTER + 1, O_CLOEXEC);
    dup2(control, CONTROL);
    dup2(counter, COUNTER);
    close_from(COUNTER + 1 + (program >= 0));
    char *const name[] = {"init", NULL}, *const nothing[] = {NULL};
    if (program >= 0) fexecve(program, name, nothing);
    prctl(PR_SET_NAME, "init", 0, 0, 0);
    while ((got = read(CONTROL, request, sizeof request)) > 0 || (got < 0 && errno == EINTR)) {
        bool done = request[0] == 's' ? !kill(-1, SIGSTOP) : pwrite(COUNTER, "1", 1, 0) == 1;
        if (got > 0 && write(CONTROL, done ? "ok" : "no", 2) < 0) return;
    }
}

static void exec_bash(const struct json *env) {
    static const int default_signals[] = {SIGPIPE, SIGINT, SIGXFSZ, SIGCHLD};
    char **variables = calloc(env->length + 2, sizeof *variables);
    size_t count = 0;
    for (const struct json *v = env->first; v && variables; v = v->next)
        if (strcmp(v->key, "TERM") && asprintf(&variables[count], "%s=%s", v->key, v->text) > 0)
            count++;
    if (!variables) return;
    variables[count] = "TERM=xterm";
    int terminal = open("/dev/pts/0", O_RDWR);  /* opening it makes it the controlling terminal */
    for (int fd = 0; fd < 3; fd++) dup2(terminal, fd);
    close_from(3);
    for (size_t i = 0; i < 4; i++) signal(default_signals[i], SIG_DFL);
    char *const name[] = {"/bin/bash", NULL};
    execve("/bin/bash", name, variables);
}

static void run_init(int control, bool plain, int program) {
    char *message = malloc(MAX_MESSAGE + 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setsid();
    ssize_t got = message ? recv(control, message, MAX_MESSAGE, 0) : 0;
    if (got <= 0) return;
    message[got] = 0;
    int counter = mount_own_proc(message);
    const char *answer = counter < 0 ? error_message() : "ok";
    if (send(control, answer, strlen(answer), MSG_NOSIGNAL) < 0 || counter < 0) return;
    if (plain) {
        run_idle_init(control, counter, program);
    } else if ((got = recv(control, message, MAX_MESSAGE, 0)) > 0) {
        struct json *request = json_parse(message, (size_t)got);
        if (request && request->first && !chdir("/") && !set_limits(request->first, true, 0))
            exec_bash(request->first->next);
    }
}

int start_init(struct isolation *isolation, bool plain, int program) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return fail("socketpair");
    isolation->init = fork();
    if (isolation->init < 0) return fail("fork");
    if (isolation->init == 0) {
        close(pair[0]);
        run_init(pair[1], plain, program);
        _exit(1);
    }
    close(pair[1]);
    isolation->control = pair[0];
    return 0;
}

int mount_proc(struct isolation *isolation, const char *stage) {
    char problem[1024];
    if (send(isolation->control, stage, strlen(stage), MSG_NOSIGNAL) < 0) return fail("PID 1");
    ssize_t got = recv(isolation->control, problem, sizeof problem - 1, 0);
    if (got == 2 && !memcmp(problem, "ok", 2)) return 0;
    problem[got > 0 ? got : 0] = 0;
    errno = EIO;
    return fail("PID 1: %s", got > 0 ? problem : "died");
}

int run_init_shell(struct isolation *isolation, const struct json *limits, const struct json *env) {
    struct text message = {0};
    append(&message, "[{", 2);
    for (const struct json *v = limits->first; v; v = v->next)
        append_format(&message, "%s\"%s\": %lld", v == limits->first ? "" : ", ", v->key,
                      v->number);
    append(&message, "}, ", 3);
    append_json_strings(&message, env);
    append(&message, "]", 1);
    ssize_t sent = send(isolation->control, message.bytes, message.length, MSG_NOSIGNAL);
    free(message.bytes);
    close(isolation->control);
    isolation->control = -1;
    return sent < 0 ? fail("PID 1") : 0;
}

/* Send a command to PID 1. "reset" restarts the numbering of processes; "stop" stops every other
   process of the sandbox at once. */
int command_init(const struct isolation *isolation, const char *what) {
    char answer[16];
    if (sandbox.in_container && !strcmp(what, "stop"))  /* PID 1 is this process */
        return kill(-1, SIGSTOP) && errno != ESRCH ? -1 : 0;
    if (isolation->control >= 0
        && send(isolation->control, what, strlen(what), MSG_NOSIGNAL) >= 0) {
        ssize_t got = recv(isolation->control, answer, sizeof answer, 0);
        if (got == 2 && !memcmp(answer, "ok", 2)) return 0;
    }
    errno = EOPNOTSUPP;
    return fail("PID 1 cannot do this: %s", what);
}

/* Keep the master side of a terminal open, so that the shell on it never reads the end of its
   input. */
int open_terminal(void) {
    int unlocked = 0, master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) return fail("/dev/pts/ptmx");
    return ioctl(master, TIOCSPTLCK, &unlocked) ? fail("/dev/pts/ptmx") : 0;
}
