/* Keeps the supervisor out of the control group that limits the memory of its sandbox. The memory of
   the supervisor is then not the sandbox's, and if the sandbox runs out of memory, the kernel cannot
   choose the supervisor. Programs are started in the group.

   In version 1 of control groups, a new process enters the group by itself, which takes some
   microseconds. In version 2 that would take milliseconds, so the kernel starts it in the group. It
   allows this only in a namespace of control groups that contains both groups, so the supervisor has
   none of its own there, but each program has. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#define INTO_CGROUP 0x200000000ULL

/* files that a process writes to, to enter the group and to leave it; in version 2, the group */
static struct { int enter, leave, directory; } group = {-1, -1, -1};

static int open_entry(const struct json *paths, const char *key, int flags) {
    const char *path = json_text(paths, key);
    return *path ? open(path, flags | O_CLOEXEC) : -1;
}

/* Open the files of the group in which this process was started, while it can see them. */
void open_group(const struct json *paths) {
    group.enter = open_entry(paths, "enter", O_WRONLY);
    group.leave = open_entry(paths, "leave", O_WRONLY);
    group.directory = open_entry(paths, "directory", O_PATH | O_DIRECTORY);
}

bool is_group_namespace_shared(void) {
    return group.directory >= 0;
}

/* Leave the group. If that fails, the supervisor remains in it, and programs inherit it. */
void leave_group(void) {
    if (group.leave < 0 || (group.enter >= 0 && write(group.leave, "0", 1) == 1)) return;
    if (group.enter >= 0) close(group.enter);
    group.enter = -1;
}

/* Start a process in the group as vfork(2) does, but without sharing memory. Return -1 if the kernel
   cannot do this, or if a new process has to enter the group by itself. */
pid_t fork_into_group(void) {
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
            set_tid_size, cgroup;
    } arguments = {.flags = INTO_CGROUP | CLONE_VFORK, .exit_signal = SIGCHLD};
    if (group.enter < 0 || group.directory < 0) return errno = ENOSYS, -1;
    arguments.cgroup = (uint64_t)group.directory;
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments, 0L, 0L, 0L, filter_key);
}

/* Start a process as fork(2) does, but as another child of this process's parent. */
pid_t fork_sibling(void) {
    return (pid_t)syscall(SYS_clone, CLONE_PARENT, 0L, 0L, 0L, 0L);
}

/* Return to the group for a while. */
int enter_group(void) {
    return group.enter >= 0 && write(group.enter, "0", 1) < 0 ? -1 : 0;
}

/* In a new process: see no group above the own one. */
int hide_groups(void) {
    return is_group_namespace_shared() ? sys_unshare(CLONE_NEWCGROUP) : 0;
}
