/* Starts PID 1 of a sandbox and sends it commands. PID 1 mounts /proc, which only a process of the
   namespace can do, and then collects orphans. If the supervisor ends, the kernel kills PID 1, and
   with it all processes of the sandbox.

   PID 1 executes nothing after the fork. So its memory belongs to the user namespace in which the
   supervisor was executed, and as it is not dumpable, its files in /proc belong to nobody that the
   sandbox knows: no process there can read its memory or write its oom_score_adj. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_MESSAGE (1 << 20)
#define MAX_COMMAND 16
#define PAGE 4096UL
#define CONTROL 3
#define COUNTER 4
#define HARDENED_FLAGS (MS_NOSUID | MS_NODEV)

/* Make a directory of /proc read-only. Ignore a missing path. */
static int protect_directory(const char *proc, const char *name) {
    char path[4096];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", proc, name);
    if (stat(path, &found) || !S_ISDIR(found.st_mode)) return 0;
    return sys_mount(path, path, NULL, MS_BIND | MS_REC, NULL) || make_read_only(path) ? -1 : 0;
}

/* Hide the content of directories of /proc. All show one empty file system, because each costs the
   kernel memory for every control group of the machine. */
static int empty_directories(const char *proc, const char *const *names, size_t count) {
    char path[4096], first[4096] = "";
    struct stat found;
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", proc, names[i]);
        if (stat(path, &found) || !S_ISDIR(found.st_mode)) continue;
        if (*first ? sys_mount(first, path, NULL, MS_BIND, NULL)
                   : sys_mount("tmpfs", path, "tmpfs", HARDENED_FLAGS | MS_RDONLY,
                               "mode=555,size=4k"))
            return -1;
        if (!*first) memcpy(first, path, sizeof first);
    }
    return 0;
}

static int write_counts(const char *proc, const char *const counts[][2], size_t number) {
    char path[4224];
    int result = 0;
    for (size_t i = 0; i < number; i++) {
        snprintf(path, sizeof path, "%s/sys/%s", proc, counts[i][0]);
        if (write_text(path, counts[i][1])) result = -1;
    }
    return result;
}

/* Bound what the kernel counts for each user of this user namespace. */
int bound_user_counts(const char *proc) {
    static const char *const counts[][2] = {
        {"user/max_inotify_instances", "8"}, {"user/max_inotify_watches", "8192"},
    };
    return write_counts(proc, counts, sizeof counts / sizeof *counts);
}

/* Bound what the kernel counts for each user and for each IPC namespace, so that one sandbox cannot
   take the share of all others, which have the same user outside. */
void bound_shared_counts(const char *proc) {
    static const char *const counts[][2] = {
        {"kernel/msgmni", "32"}, {"kernel/sem", "250 8000 32 64"},
        {"kernel/shmall", "16384"},  /* pages; as much as /dev/shm has */
    };
    bool failed = bound_user_counts(proc);
    if (write_counts(proc, counts, sizeof counts / sizeof *counts) || failed)
        clear_error();  /* older kernels forbid some */
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
        if (protect_directory(proc, read_only[i])) return -1;
    if (empty_directories(proc, emptied, 3)) return -1;
    for (size_t i = 0; i < 7; i++) {
        snprintf(path, sizeof path, "%s/%s", proc, masked[i]);
        if (!access(path, F_OK) && sys_mount(null, path, NULL, MS_BIND, NULL)) return -1;
    }
    return last;
}

/* The code of PID 1 after its set-up, on pages of its own. It uses no other memory than `buffer`,
   no library and no stack protector, because nothing else of the program remains mapped. */
#define ALONE __attribute__((section("pid1"), aligned(4096), noinline, noreturn))
extern char __start_pid1[], __stop_pid1[];

struct range { uintptr_t from, to; };

static inline __attribute__((always_inline)) long raw_call(long number, long a, long b, long c,
                                                           long d) {
#ifdef __x86_64__
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return number;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
        x2 __asm__("x2") = c, x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#endif
}

/* Unmap `gaps`, and serve the supervisor until it closes the connection. "stop" stops all other
   processes of the sandbox at once, so that none can fork. "reset" restarts the numbering of
   processes. The answer is "ok" or "no". */
static ALONE void serve_alone(char *buffer, const struct range *gaps, size_t count) {
    for (size_t i = 0; i < count; i++)
        raw_call(SYS_munmap, (long)gaps[i].from, (long)(gaps[i].to - gaps[i].from), 0, 0);
    for (;;) {
        long got = raw_call(SYS_read, CONTROL, (long)buffer, MAX_COMMAND, 0);
        if (got == -EINTR) continue;
        if (got <= 0) break;
        bool done = true;
        if (buffer[0] == 's') {
            raw_call(SYS_kill, -1, SIGSTOP, 0, 0);
        } else {
            buffer[0] = '1';
            done = raw_call(SYS_pwrite64, COUNTER, (long)buffer, 1, 0) == 1;
        }
        buffer[0] = done ? 'o' : 'n';
        buffer[1] = done ? 'k' : 'o';
        raw_call(SYS_write, CONTROL, (long)buffer, 2, 0);
    }
    for (;;) raw_call(SYS_exit_group, 1, 0, 0, 0);
}

/* Show `name` as the command line. The kernel shows the memory of the arguments, up to the first
   NUL if the last byte is not NUL. */
static void set_title(const char *name) {
    size_t length = strlen(process_title), used = strlen(name);
    if (used > length) return;
    memset(process_title, 0, length);
    memcpy(process_title, name, used);
    if (used < length) process_title[length] = 1;
}

/* Lose all other capabilities for good, also for programs that would be executed. */
static void keep_capabilities(uint64_t kept) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    for (size_t i = 0; i < 2; i++) data[i].permitted = data[i].effective = (uint32_t)(kept >> 32 * i);
    drop_capabilities(0);
    syscall(SYS_capset, &header, data);
}

/* List what PID 1 does not need, the lowest first: all but its code, the stack, and the variables of
   the thread, to which the kernel writes (rseq). */
static size_t list_gaps(struct range gaps[3], const char *stack) {
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    struct range code = {(uintptr_t)__start_pid1, (uintptr_t)__stop_pid1};
    struct range thread = {(uintptr_t)&errno - PAGE, (uintptr_t)&errno + PAGE};
    struct range kept[] = {thread.from < code.from ? thread : code,
                           thread.from < code.from ? code : thread,
                           {(uintptr_t)stack - 2 * PAGE, 0}};
    uintptr_t end = 0;
    for (size_t i = 0; i < 3; i++) {
        uintptr_t from = kept[i].from & -PAGE;
        gaps[i] = (struct range){end, from > end ? from : end};
        end = (kept[i].to + PAGE - 1) & -PAGE;
    }
    return 3;
}

/* Serve as PID 1 with this command line until the supervisor closes `control`. */
static void wait_as(const char *name, int control, int counter) {
    char buffer[MAX_COMMAND];
    struct range gaps[3];
    const char *slash = strrchr(name, '/');
    signal(SIGCHLD, SIG_IGN);  /* the kernel collects orphans */
    control = fcntl(control, F_DUPFD, COUNTER + 1);
    counter = fcntl(counter, F_DUPFD, COUNTER + 1);
    dup2(control, CONTROL);
    dup2(counter, COUNTER);
    close_from(COUNTER + 1);
    /* to stop the processes of other users, too */
    keep_capabilities(1ULL << CAP_CHECKPOINT_RESTORE | (uint64_t)sandbox.has_users << CAP_KILL);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NAME, slash ? slash + 1 : name, 0, 0, 0);
    set_title(name);
    serve_alone(buffer, gaps, list_gaps(gaps, buffer));
}

/* Be on the terminal as a shell is: the leader of its foreground group. */
static void open_as_terminal(void) {
    int terminal = open("/dev/pts/0", O_RDWR);  /* opening it makes it the controlling terminal */
    for (int fd = 0; fd < 3; fd++) dup2(terminal, fd);
    tcsetpgrp(terminal, getpid());
}

/* Show the directories of PID 1 that nobody may read as empty ones, by binding a directory of /proc
   that is emptied anyway. A search of all files then prints no errors about them, as in a container
   whose PID 1 is an ordinary process. */
static int empty_own_directories(const char *stage) {
    static const char *const names[] = {"fd", "fdinfo", "map_files", "ns",
                                        "task/1/fd", "task/1/fdinfo", "task/1/ns"};
    char source[4096], target[4224];
    struct stat found;
    snprintf(source, sizeof source, "%s/proc/acpi", stage);
    if (stat(source, &found)) snprintf(source, sizeof source, "%s/proc/scsi", stage);
    if (stat(source, &found)) return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(target, sizeof target, "%s/proc/1/%s", stage, names[i]);
        if (!stat(target, &found) && sys_mount(source, target, NULL, MS_BIND, NULL)) return -1;
    }
    return 0;
}

static void run_init(int control, bool plain) {
    char *message = malloc(MAX_MESSAGE + 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setsid();
    if (hide_groups()) return;
    ssize_t got = message ? recv(control, message, MAX_MESSAGE, 0) : 0;
    if (got <= 0) return;
    message[got] = 0;
    int counter = mount_own_proc(message);
    if (counter >= 0 && empty_own_directories(message)) counter = -1;
    const char *answer = counter < 0 ? error_message() : "ok";
    if (send(control, answer, strlen(answer), MSG_NOSIGNAL) < 0 || counter < 0) return;
    if (plain) wait_as("init", control, counter);
    if ((got = recv(control, message, MAX_MESSAGE, 0)) <= 0) return;
    message[got] = 0;
    const struct json *limits = json_parse(message, (size_t)got);
    if (!limits || chdir("/") || set_limits(limits, ALL_LIMITS, 0)) return;
    open_as_terminal();
    wait_as("/bin/bash", control, counter);
}

int start_init(struct isolation *isolation, bool plain) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return fail("socketpair");
    isolation->init = fork();
    if (isolation->init < 0) return fail("fork");
    if (isolation->init == 0) {
        close(pair[0]);
        run_init(pair[1], plain);
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

/* Let a PID 1 that is not plain take its limits and a terminal, after the change of root. */
int open_init_terminal(const struct isolation *isolation, const struct json *limits) {
    struct text message = {0};
    for (const struct json *v = limits->first; v; v = v->next)
        append_format(&message, "%s\"%s\": %lld", v == limits->first ? "{" : ", ", v->key,
                      v->number);
    append(&message, "}", 1);
    ssize_t sent = send(isolation->control, message.bytes, message.length, MSG_NOSIGNAL);
    free(message.bytes);
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

/* Keep the master side of a terminal open. */
int open_terminal(void) {
    int unlocked = 0, master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) return fail("/dev/pts/ptmx");
    return ioctl(master, TIOCSPTLCK, &unlocked) ? fail("/dev/pts/ptmx") : 0;
}
