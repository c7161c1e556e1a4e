/* What a keeper started itself, and in a container all that becomes its child. */

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

#define ENDING_MS 500       /* for PID 1 to have ended, once nothing can be started any more */

int pidfd_of(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* What the box calls the process behind a descriptor. */
pid_t number_inside(int pidfd) {
    char name[16], text[4096], *line;
    snprintf(name, sizeof name, "%d", pidfd);
    int fd = openat(box.blank.fdinfo, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    if (!(line = strstr(text, "NSpid:"))) return -1;
    line[strcspn(line, "\n")] = 0;
    char *last = strrchr(line, '\t');
    return last ? atoi(last) : -1;
}

void reap(size_t i) {
    struct child child = box.children[i];
    int status = 0, code;
    box.children[i] = box.children[--box.count];
    waitpid(child.pid, &status, 0);
    code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    if (write(child.status, &code, sizeof code) < 0) errno = 0;  /* nobody asks any more */
    close(child.pidfd);
    close(child.status);
}

size_t background(struct text *out) {
    pid_t spared[box.count + 1];
    for (size_t i = 0; i < box.count; i++) spared[i] = box.children[i].inside;
    return names_of_others(out, spared, box.count);
}

/* Collect what has ended in a container: its orphans are children of its keeper. */
void collect(void) {
    struct signalfd_siginfo told;
    siginfo_t ended;
    while (read(box.init_fd, &told, sizeof told) > 0) {}
    for (;;) {
        size_t i = 0;
        ended.si_pid = 0;
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid) return;
        while (i < box.count && box.children[i].pid != ended.si_pid) i++;
        if (i < box.count) reap(i);
        else waitpid(ended.si_pid, NULL, 0);
    }
}

/* Nothing can be started in a box whose PID 1 is ending, which takes until its processes are
   collected: the box has gone then, and that is what its owner is to see. */
void end_with_init(void) {
    struct pollfd init = {.fd = box.init_fd, .events = POLLIN};
    for (size_t i = box.count; i-- > 0;) {
        struct pollfd child = {.fd = box.children[i].pidfd, .events = POLLIN};
        if (poll(&child, 1, 0) > 0) reap(i);
    }
    if (poll(&init, 1, ENDING_MS) > 0) _exit(0);
}
