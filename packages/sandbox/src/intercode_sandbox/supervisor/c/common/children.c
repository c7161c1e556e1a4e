/* The processes that the supervisor started. In a container, orphans become its children as
   well. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDING_MS 500  /* wait in milliseconds for PID 1 to end, once no process can be started */

int pidfd_of(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Return the number in the sandbox of the process of a pidfd. */
pid_t read_inner_pid(int pidfd) {
    char name[16], text[4096], *line;
    snprintf(name, sizeof name, "%d", pidfd);
    read_text(sandbox.isolation.fdinfo, name, text, sizeof text);
    if (!(line = strstr(text, "NSpid:"))) return -1;
    line[strcspn(line, "\n")] = 0;
    char *last = strrchr(line, '\t');
    return last ? atoi(last) : -1;
}

void reap(size_t i) {
    struct child child = sandbox.children[i];
    int status = 0, code;
    sandbox.children[i] = sandbox.children[--sandbox.count];
    waitpid(child.pid, &status, 0);
    code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    if (write(child.status, &code, sizeof code) < 0) errno = 0;  /* nobody waits for the status */
    close(child.pidfd);
    close(child.status);
}

size_t list_background(struct text *out) {
    pid_t own_pids[sandbox.count + 1];
    for (size_t i = 0; i < sandbox.count; i++) own_pids[i] = sandbox.children[i].inner_pid;
    return list_other_processes(out, own_pids, sandbox.count);
}

/* Collect the processes that have ended in a container. Its orphans are children of the
   supervisor. */
void reap_all(void) {
    struct signalfd_siginfo info;
    siginfo_t ended;
    while (read(sandbox.init_fd, &info, sizeof info) > 0) {}
    for (;;) {
        size_t i = 0;
        ended.si_pid = 0;
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid) return;
        while (i < sandbox.count && sandbox.children[i].pid != ended.si_pid) i++;
        if (i < sandbox.count) reap(i);
        else waitpid(ended.si_pid, NULL, 0);
    }
}

/* Tell the owner that PID 1 has ended, and exit. PID 1 ends only by SIGKILL, which the kernel sends
   if memory runs out, so the owner takes this for the doing of the sandbox. */
void exit_after_init(void) {
    int status = 0;
    char cause[64];
    waitpid(sandbox.isolation.init, &status, 0);
    snprintf(cause, sizeof cause, "signal %d ended PID 1", WTERMSIG(status));
    send_report(cause);
    _exit(0);
}

/* Exit if PID 1 is ending. No process can be started then, and PID 1 ends only when all processes
   are collected. */
void exit_if_init_ended(void) {
    struct pollfd init = {.fd = sandbox.init_fd, .events = POLLIN};
    for (size_t i = sandbox.count; i-- > 0;) {
        struct pollfd child = {.fd = sandbox.children[i].pidfd, .events = POLLIN};
        if (poll(&child, 1, 0) > 0) reap(i);
    }
    if (poll(&init, 1, ENDING_MS) > 0) exit_after_init();
}

/* Kill every process of the sandbox and collect the children. Fails with EBUSY and the names of the
   processes that do not end. */
int end_all_processes(void) {
    struct text names = {0};
    append(&names, "", 0);
    bool ended = kill_all(&sandbox.isolation, &names);
    if (ended)
        while (sandbox.count) reap(0);
    errno = EBUSY;
    if (!ended) fail("live processes: %s", names.bytes);
    free(names.bytes);
    return ended ? 0 : -1;
}
