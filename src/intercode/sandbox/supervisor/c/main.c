/* One process per box, outside its process namespace: sets the box up, starts commands in it, reads
   and writes its files, and takes the box down when its owner goes away. See box/keeper.py.

   The launcher starts it with a connection as descriptor 3 and, if there is one, the program of PID 1
   as descriptor 4. On 3 comes first what the blank is to be, then the request for a box; where
   descriptors cannot be passed, the request comes with the first message and they are inherited.

   Started with the path of a socket it keeps the container whose PID 1 it is: see container.c. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LAUNCHER 3
#define PROGRAM 4
#define INHERITED 5

/* --------------------------------------------------------------------- set-up */
static int set_up(const int *fds, size_t count) {
    const char *hostname = get_text(box.spec, "hostname");
    const struct json *limits = get(box.spec, "limits");
    if (sethostname(hostname, strlen(hostname))) return failed("sethostname");
    if (lay_out(&box.layout, box.spec, fds, count)) return -1;
    if (!strcmp(get_text(box.spec, "look"), "docker")
        && (open_terminal() || become_bash(&box.blank, limits, get(box.spec, "env"))))
        return -1;
    if (limited(limits, true, 0)) return -1;
    if (get_bool(box.spec, "steady") && personality(ADDR_NO_RANDOMIZE) < 0)
        return failed("personality");
    if ((box.root = open("/", DIRECTORY)) < 0) return failed("/");
    if (get_bool(box.spec, "steady")) look_around(box.root, 0);
    if ((box.init_fd = pidfd_of(box.blank.init)) < 0) return failed("pidfd_open");
    return 0;
}

int main(int count, char **arguments) {
    struct message order, request;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    if (count > 1) keep_container(arguments);
    prctl(PR_SET_NAME, "intercode", 0, 0, 0);
    for (int fd = LAUNCHER; fd < INHERITED + MOST_FDS; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!receive(LAUNCHER, &order)) _exit(1);
    size_t inherited = (size_t)get_number(order.body, "inherited");
    close_range((unsigned)(INHERITED + inherited), ~0U, 0);
    key = strtoul(get_text(order.body, "key"), NULL, 10);
    bool blank = !make_blank(&box.blank, order.body, get_bool(order.body, "program") ? PROGRAM : -1);
    int code = errno;
    close(PROGRAM);
    if (inherited) {
        request = (struct message){.body = (struct json *)get(order.body, "request"),
                                   .count = inherited};
        for (size_t i = 0; i < inherited; i++) request.fds[i] = INHERITED + (int)i;
    } else if (!receive(LAUNCHER, &request)) {
        _exit(0);
    }
    close(LAUNCHER);
    if (!request.count) _exit(1);
    box.owner = request.fds[0];
    box.spec = request.body;
    errno = code;
    bool made = blank && !set_up(request.fds + 1, request.count - 1);
    welcome(made);
    for (size_t i = 1; i < request.count; i++) close(request.fds[i]);
    serve();
    _exit(0);
}
