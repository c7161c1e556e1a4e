/* Confines changes of modes, times and extended attributes, which Landlock leaves out, to the sandbox's
   directory. The kernel asks the guard before each one, and waits for its answer.

   Another thread of a program can replace the path after the guard has read it. So this prevents
   accidents, and an attacker can evade it. */

#define _GNU_SOURCE
#include "landlock/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif
#define ABSENT -1  /* of an argument */

/* A call that changes attributes, and which of its arguments are the directory's or file's descriptor,
   the path, and flags. */
static const struct call { int number, descriptor, path, flags; bool follows; } calls[] = {
#ifdef SYS_chmod
    {SYS_chmod, ABSENT, 0, ABSENT, true}, {SYS_utime, ABSENT, 0, ABSENT, true},
    {SYS_utimes, ABSENT, 0, ABSENT, true}, {SYS_futimesat, 0, 1, ABSENT, true},
#endif
    {SYS_fchmod, 0, ABSENT, ABSENT, true}, {SYS_fchmodat, 0, 1, ABSENT, true},
    {452 /* fchmodat2 */, 0, 1, 3, true}, {SYS_utimensat, 0, 1, 3, true},
    {SYS_setxattr, ABSENT, 0, ABSENT, true}, {SYS_lsetxattr, ABSENT, 0, ABSENT, false},
    {SYS_fsetxattr, 0, ABSENT, ABSENT, true}, {SYS_removexattr, ABSENT, 0, ABSENT, true},
    {SYS_lremovexattr, ABSENT, 0, ABSENT, false}, {SYS_fremovexattr, 0, ABSENT, ABSENT, true},
    {463 /* setxattrat */, 0, 1, 2, true}, {466 /* removexattrat */, 0, 1, 2, true},
    {469 /* file_setattr */, 0, 1, 4, true},
};
#define CALLS (sizeof calls / sizeof *calls)

/* In the supervisor: let the guard answer these calls, also its own. Return the guard's descriptor. */
int install_attribute_filter(void) {
    struct sock_filter code[CALLS + 5];
    size_t n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 0, CALLS + 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number,
                                                 (unsigned char)(CALLS - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    const struct sock_fprog program = {(unsigned short)n, code};
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd < 0 ? fail("a seccomp filter with a listener") : fd;
}

/* Read a string from the memory of a process. */
static int read_string(pid_t pid, uint64_t address, char *text, size_t capacity) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t got = 0;
    size_t length = 0;
    while (length < capacity && !memchr(text, 0, length)) {
        /* not beyond a page, because the next one may not exist */
        size_t part = 4096 - (address + length) % 4096;
        if (part > capacity - length) part = capacity - length;
        if ((got = pread(fd, text + length, part, (off_t)(address + length))) <= 0) break;
        length += (size_t)got;
    }
    close(fd);
    return memchr(text, 0, length) ? 0 : -1;
}

/* Return 0 if an open path is in the sandbox's directory or has no path, or an error number. */
static int check_open_file(const char *link) {
    char path[PATH_MAX];
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return errno;
    path[length] = 0;
    if (*path != '/' || !strncmp(path, "/memfd:", 7)) return 0;
    bool own = !strncmp(path, sandbox.root_path, sandbox.root_length)
        && (!path[sandbox.root_length] || path[sandbox.root_length] == '/');
    return own ? 0 : EPERM;
}

/* Return the process of a thread, whose descriptors need not be those of the thread. */
static pid_t process_of(pid_t thread) {
    char name[64], status[1024];
    snprintf(name, sizeof name, "/proc/%d/status", thread);
    if (read_text(AT_FDCWD, name, status, sizeof status) <= 0) return 0;
    const char *line = strstr(status, "\nTgid:");
    return line ? (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10) : 0;
}

/* Return whether a path is that of a descriptor, as C libraries write it for `fchmodat`. Write the path
   under which the guard sees the same descriptor. */
static bool translate_descriptor_path(pid_t pid, const char *path, char *link, size_t capacity) {
    static const char *const prefixes[] = {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(path, prefixes[i], length)) continue;
        size_t digits = strspn(path + length, "0123456789");
        if (!digits || path[length + digits]) continue;
        bool of_thread = i == 2;
        snprintf(link, capacity, "/proc/%d/fd/%s", of_thread ? pid : process_of(pid), path + length);
        return true;
    }
    return false;
}

/* Return 0 if a path leads into the sandbox's directory, or an error number. The links of /proc to open
   files are refused, because those of the guard are others. A path that the guard does not find may
   still lead somewhere for the caller, so its call must not go on. */
static int check_path(pid_t pid, int directory, const char *path, bool follows) {
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW), .resolve = RESOLVE_NO_MAGICLINKS,
    };
    char link[PATH_MAX + 64];
    if (follows && translate_descriptor_path(pid, path, link, sizeof link)) return check_open_file(link);
    int base = AT_FDCWD;
    if (*path != '/') {
        if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/%d/cwd", pid);
        else snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, directory);
        if ((base = open(link, O_PATH | O_CLOEXEC)) < 0) return errno;
    }
    int fd = open_resolved(base, path, &how), code = fd < 0 ? errno : 0;
    if (base >= 0) close(base);
    if (fd < 0) return code;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    code = check_open_file(link);
    close(fd);
    return code;
}

/* Return 0 if a call may go on, or an error number. */
static int check_call(const struct seccomp_notif *asked) {
    const struct call *call = NULL;
    char path[PATH_MAX] = "", link[64];
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].number == asked->data.nr) call = &calls[i];
    if (!call) return EPERM;
    const uint64_t *arguments = (const uint64_t *)asked->data.args;
    int directory = call->descriptor == ABSENT ? AT_FDCWD : (int)arguments[call->descriptor];
    int flags = call->flags == ABSENT ? 0 : (int)arguments[call->flags];
    uint64_t address = call->path == ABSENT ? 0 : arguments[call->path];
    pid_t pid = (pid_t)asked->pid;
    if (address && read_string(pid, address, path, sizeof path)) return EPERM;
    if (*path)
        return check_path(pid, directory, path, call->follows && !(flags & AT_SYMLINK_NOFOLLOW));
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/%d/cwd", pid);
    else snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, directory);
    return check_open_file(link);
}

/* In the guard: answer one call. Those of the supervisor go on. */
void answer_attribute_call(int listener, pid_t supervisor) {
    union { struct seccomp_notif asked; char room[1024]; } in;
    union { struct seccomp_notif_resp answer; char room[1024]; } out;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in.asked)) return;
    out.answer.id = in.asked.id;
    int code = (pid_t)in.asked.pid == supervisor ? 0 : check_call(&in.asked);
    if (code) out.answer.error = -code;
    else out.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out.answer);
}
