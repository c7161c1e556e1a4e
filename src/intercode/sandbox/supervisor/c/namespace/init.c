/* PID 1 of a box. It mounts /proc, which only a process of the box can, and then collects orphans.
   When it ends, so does the box, and it ends with the keeper. See box/inside.py and box/idle.py. */

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

#define LONGEST_ORDER (1 << 20)
#define HIGH 400      /* descriptor numbers above all that is handed on */
#define CONTROL 3
#define COUNTER 4
#define HARDENED (MS_NOSUID | MS_NODEV)

static int hide(const char *proc, const char *name, bool empty) {
    char path[4096];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", proc, name);
    if (stat(path, &found)) return 0;
    if (!empty) {
        if (!S_ISDIR(found.st_mode)) return 0;
        return mounted(path, path, NULL, MS_BIND | MS_REC, NULL) || made_read_only(path) ? -1 : 0;
    }
    if (S_ISDIR(found.st_mode))
        return mounted("tmpfs", path, "tmpfs", HARDENED | MS_RDONLY, "mode=555,size=4k");
    return 0;
}

/* A /proc below the stage, the host's knobs hidden. Gives a file that holds the last process number
   given, or nothing where the kernel has no such file. */
static int mount_own_proc(const char *stage) {
    static const char *const read_only[] = {"bus", "fs", "irq", "sys"};
    static const char *const emptied[] = {"acpi", "scsi", "tty/driver"};
    static const char *const masked[] = {"kcore", "keys", "latency_stats", "timer_list",
                                         "sched_debug", "sysrq-trigger", "kmsg"};
    char proc[4096], path[4224], null[4224];
    snprintf(proc, sizeof proc, "%s/proc", stage);
    snprintf(null, sizeof null, "%s/dev/null", stage);
    if (mounted("proc", proc, "proc", HARDENED | MS_NOEXEC, NULL)) return -1;
    snprintf(path, sizeof path, "%s/sys/kernel/ns_last_pid", proc);
    int last = open(path, O_RDWR | O_CLOEXEC);
    if (last < 0) last = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (last < 0) return failed("/dev/null");
    for (size_t i = 0; i < 4; i++)
        if (hide(proc, read_only[i], false)) return -1;
    for (size_t i = 0; i < 3; i++)
        if (hide(proc, emptied[i], true)) return -1;
    for (size_t i = 0; i < 7; i++) {
        snprintf(path, sizeof path, "%s/%s", proc, masked[i]);
        if (!access(path, F_OK) && mounted(null, path, NULL, MS_BIND, NULL)) return -1;
    }
    return last;
}

static void be_idle(int control, int counter, int program) {
    char told[16];
    ssize_t got;
    signal(SIGCHLD, SIG_IGN);
    control = fcntl(control, F_DUPFD, HIGH);
    counter = fcntl(counter, F_DUPFD, HIGH);
    if (program >= 0) program = dup3(program, COUNTER + 1, O_CLOEXEC);
    dup2(control, CONTROL);
    dup2(counter, COUNTER);
    close_range(COUNTER + 1 + (program >= 0), ~0U, 0);
    char *const name[] = {"init", NULL}, *const nothing[] = {NULL};
    if (program >= 0) fexecve(program, name, nothing);
    prctl(PR_SET_NAME, "init", 0, 0, 0);
    while ((got = read(CONTROL, told, sizeof told)) > 0 || (got < 0 && errno == EINTR)) {
        bool done = told[0] == 's' ? !kill(-1, SIGSTOP) : pwrite(COUNTER, "1", 1, 0) == 1;
        if (got > 0 && write(CONTROL, done ? "ok" : "no", 2) < 0) return;
    }
}

static void execute_bash(const struct json *env) {
    static const int usual[] = {SIGPIPE, SIGINT, SIGXFSZ, SIGCHLD};
    char **list = calloc(env->length + 2, sizeof *list);
    size_t count = 0;
    for (const struct json *v = env->first; v && list; v = v->next)
        if (strcmp(v->key, "TERM") && asprintf(&list[count], "%s=%s", v->key, v->text) > 0) count++;
    if (!list) return;
    list[count] = "TERM=xterm";
    int terminal = open("/dev/pts/0", O_RDWR);  /* opening it makes it the controlling terminal */
    for (int fd = 0; fd < 3; fd++) dup2(terminal, fd);
    close_range(3, ~0U, 0);
    for (size_t i = 0; i < 4; i++) signal(usual[i], SIG_DFL);
    char *const name[] = {"/bin/bash", NULL};
    execve("/bin/bash", name, list);
}

static void be_init(int control, bool plain, int program) {
    char *order = malloc(LONGEST_ORDER + 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setsid();
    ssize_t got = order ? recv(control, order, LONGEST_ORDER, 0) : 0;
    if (got <= 0) return;
    order[got] = 0;
    int counter = mount_own_proc(order);
    if (counter < 0) {
        if (send(control, reason(), strlen(reason()), MSG_NOSIGNAL) < 0) return;
        return;
    }
    if (send(control, "ok", 2, MSG_NOSIGNAL) < 0) return;
    if (plain) {
        be_idle(control, counter, program);
    } else if ((got = recv(control, order, LONGEST_ORDER, 0)) > 0) {
        struct json *told = json_parse(order, (size_t)got);
        if (told && told->first && !chdir("/") && !limited(told->first, true, 0))
            execute_bash(told->first->next);
    }
}

int start_init(struct blank *blank, bool plain, int program) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return failed("socketpair");
    blank->init = fork();
    if (blank->init < 0) return failed("fork");
    if (blank->init == 0) {
        close(pair[0]);
        be_init(pair[1], plain, program);
        _exit(1);
    }
    close(pair[1]);
    blank->control = pair[0];
    return 0;
}

int mount_proc(struct blank *blank, const char *stage) {
    char problem[1024];
    if (send(blank->control, stage, strlen(stage), MSG_NOSIGNAL) < 0) return failed("PID 1");
    ssize_t got = recv(blank->control, problem, sizeof problem - 1, 0);
    if (got == 2 && !memcmp(problem, "ok", 2)) return 0;
    problem[got > 0 ? got : 0] = 0;
    errno = EIO;
    return failed("PID 1: %s", got > 0 ? problem : "died");
}

int become_bash(struct blank *blank, const struct json *limits, const struct json *env) {
    struct text order = {0};
    put(&order, "[{", 2);
    for (const struct json *v = limits->first; v; v = v->next)
        put_format(&order, "%s\"%s\": %lld", v == limits->first ? "" : ", ", v->key, v->number);
    put(&order, "}, {", 4);
    for (const struct json *v = env->first; v; v = v->next) {
        if (v != env->first) put(&order, ", ", 2);
        put_quoted(&order, v->key);
        put(&order, ": ", 2);
        put_quoted(&order, v->text ? v->text : "");
    }
    put(&order, "}]", 2);
    ssize_t sent = send(blank->control, order.bytes, order.length, MSG_NOSIGNAL);
    free(order.bytes);
    close(blank->control);
    blank->control = -1;
    return sent < 0 ? failed("PID 1") : 0;
}

/* "again": the next process is numbered as the first; "stop": every other process of the box is
   stopped at once. */
int tell_init(const struct blank *blank, const char *what) {
    char said[16];
    if (box.contained && !strcmp(what, "stop"))  /* in a container */
        return kill(-1, SIGSTOP) && errno != ESRCH ? -1 : 0;
    if (blank->control >= 0 && send(blank->control, what, strlen(what), MSG_NOSIGNAL) >= 0) {
        ssize_t got = recv(blank->control, said, sizeof said, 0);
        if (got == 2 && !memcmp(said, "ok", 2)) return 0;
    }
    errno = EOPNOTSUPP;
    return failed("PID 1 cannot do this: %s", what);
}

/* Keep a terminal's master side open here, so that the shell on it never reads its end. */
int open_terminal(void) {
    int unlocked = 0, master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) return failed("/dev/pts/ptmx");
    return ioctl(master, TIOCSPTLCK, &unlocked) ? failed("/dev/pts/ptmx") : 0;
}
