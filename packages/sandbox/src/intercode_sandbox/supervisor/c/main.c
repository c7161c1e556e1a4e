/* The supervisor of one sandbox, a process outside the sandbox's process namespace. It sets the
   sandbox up, starts commands in it, reads and writes its files, and ends it when the owner
   disconnects.

   Commands are children of the supervisor, so nothing in the sandbox can see, signal or trace it.
   PID 1 of the sandbox only collects orphans. When it ends, the kernel kills all other processes of
   the sandbox.

   The launcher passes its connection as descriptor 3. The first message on it describes the isolation,
   the second is the request for a sandbox. If nobody waits for that sandbox yet, the connection to its
   owner comes with a third. If descriptors cannot be passed, the first message
   contains the request, and the descriptors are inherited. If the first message asks for a template,
   this process forks a supervisor for each connection that the launcher sends from then on, or a process
   that holds a user namespace.

   Started with the path of a socket as its argument, it supervises a container as PID 1: see
   container/container.c. With `chroot` and a descriptor it guards a sandbox below a changed root: see
   chroot/guard.c. With `landlock` and a descriptor it guards a sandbox in a directory of the machine: see
   landlock/guard.c. With `build` and a descriptor it runs a command of an image build: see
   namespace/image_build.c. With `start` it executes a program, the launcher: see common/inherited.c. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LAUNCHER 3
#define INHERITED 4

/* ---------------------------------------------------------------------- set-up */
static int set_up(const int *fds, size_t count) {
    const char *hostname = json_text(sandbox.spec, "hostname");
    const struct json *limits = json_get(sandbox.spec, "limits");
    if (restrict_change_of_user()) return -1;
    if (sethostname(hostname, strlen(hostname))) return fail("sethostname");
    if (mount_root_layout(&sandbox.layout, sandbox.spec, fds, count)) return -1;
    if (!strcmp(json_text(sandbox.spec, "appearance"), "docker")
        && (open_terminal()
            || open_init_terminal(&sandbox.isolation, limits)))
        return -1;
    if (set_limits(limits, ALL_LIMITS, 0)) return -1;
    if (json_bool(sandbox.spec, "deterministic") && personality(ADDR_NO_RANDOMIZE) < 0)
        return fail("personality");
    if ((sandbox.root = open("/", DIRECTORY)) < 0) return fail("/");
    if (json_bool(sandbox.spec, "deterministic")) visit_directories(sandbox.root, 0);
    if ((sandbox.init_fd = pidfd_of(sandbox.isolation.init)) < 0) return fail("pidfd_open");
    return 0;
}

static int enter_all(const struct json *files) {
    for (const struct json *file = files->first; file; file = file->next)
        if (write_text(file->text, "0")) return -1;
    return 0;
}

/* Create a user namespace and hold it until the launcher, which opens it, closes the connection. */
static void hold_namespace(int connection) {
    char letter;
    close(LAUNCHER);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  /* the launcher opens files in /proc */
    const char *answer = sys_unshare(CLONE_NEWUSER) ? error_message() : "created";
    if (send(connection, answer, strlen(answer), MSG_NOSIGNAL) > 0) (void)!read(connection, &letter, 1);
    _exit(0);
}

/* As the template, enter control groups and fork processes until the launcher ends. Return in each
   supervisor, with its connection. */
static void serve_as_template(void) {
    struct message order;
    for (;;) {
        if (!receive(LAUNCHER, &order)) _exit(0);
        const struct json *files = json_get(order.body, "enter");
        int result = files ? enter_all(files) : fork_sibling();
        if (!files && result == 0) {
            if (strcmp(json_text(order.body, "fork"), "namespace")) break;
            hold_namespace(order.fds[0]);
        }
        struct text answer = {0};
        append_format(&answer, "{\"result\": %d}", result < 0 ? -errno : result);
        if (reply(LAUNCHER, &answer, NULL, 0)) _exit(0);
        free(answer.bytes);
        free_message(&order);
    }
    setsid();
    dup3(order.fds[0], LAUNCHER, O_CLOEXEC);
    order.count = 0;
    free_message(&order);
}

/* Return the connection to the owner of a sandbox that was set up ahead. If that failed, tell the
   launcher, which then takes another supervisor unless it has sent the connection already. */
static int wait_for_owner(bool ready) {
    struct pollfd polled[] = {{.fd = LAUNCHER, .events = POLLIN},
                              {.fd = ready ? sandbox.init_fd : -1, .events = POLLIN}};
    struct message message;
    int error = errno;
    if (!ready) shutdown(LAUNCHER, SHUT_WR);
    while (poll(polled, 2, -1) < 0) {}
    if (!polled[0].revents) _exit(1);  /* PID 1 has ended */
    if (!receive(LAUNCHER, &message) || !message.count) _exit(0);
    close(LAUNCHER);
    errno = error;
    return message.fds[0];
}

static void close_all(const int *fds, size_t count) {
    int error = errno;
    for (size_t i = 0; i < count; i++) close(fds[i]);
    errno = error;
}

int main(int count, char **arguments) {
    struct message setup, request;
    reset_inherited();
    if (count > 2 && !strcmp(arguments[1], "start")) start_program(arguments + 2);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (count > 2 && !strcmp(arguments[1], "build")) run_image_build(arguments[2]);
    if (count > 2 && !strcmp(arguments[1], "chroot")) run_guard(arguments[2]);
    if (count > 2 && !strcmp(arguments[1], "landlock")) run_landlock_guard(arguments[2]);
    if (count > 2 && !strcmp(arguments[1], "end")) end_user(arguments[2]);
    if (count > 3 && !strcmp(arguments[1], "programs")) copy_programs(arguments[2], arguments[3]);
    if (count > 1) supervise_container(arguments);
    prctl(PR_SET_NAME, "intercode", 0, 0, 0);
    for (int fd = LAUNCHER; fd < INHERITED + MOST_FDS; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!receive(LAUNCHER, &setup)) _exit(1);
    if (json_bool(setup.body, "template")) {
        filter_key = strtoul(json_text(setup.body, "key"), NULL, 10);
        serve_as_template();
        if (!receive(LAUNCHER, &setup)) _exit(1);
    }
    size_t inherited = (size_t)json_number(setup.body, "inherited");
    close_from(INHERITED + (int)inherited);
    filter_key = strtoul(json_text(setup.body, "key"), NULL, 10);
    open_group(json_get(setup.body, "group"));
    process_title = arguments[0];
    /* Landlock first: without no_new_privs, it needs a capability that the change of user removes */
    bool created = !confine_by_landlock() && !become_user(setup.body)
        && !create_isolation(&sandbox.isolation, setup.body);
    int error = errno;
    leave_group();
    if (inherited) {
        request = (struct message){.body = (struct json *)json_get(setup.body, "request"),
                                   .count = inherited};
        for (size_t i = 0; i < inherited; i++) request.fds[i] = INHERITED + (int)i;
    } else if (!receive(LAUNCHER, &request)) {
        _exit(0);
    }
    sandbox.spec = request.body;
    bool ahead = json_bool(sandbox.spec, "ahead");
    size_t first = ahead ? 0 : 1;  /* descriptor that is not the connection to the owner */
    if (request.count < first) _exit(1);
    if (!ahead) close(LAUNCHER);
    errno = error;
    if (json_number(sandbox.spec, "copies")) enter_group();  /* they count for the sandbox */
    bool ready = created && !set_up(request.fds + first, request.count - first);
    if (json_number(sandbox.spec, "copies")) leave_group();
    close_all(request.fds + first, request.count - first);
    if (ahead) ready = ready && !unmount_old_root();
    sandbox.owner = ahead ? wait_for_owner(ready) : request.fds[0];
    send_handshake(ready);
    if (!ahead && unmount_old_root()) _exit(1);  /* the owner prepares its first request meanwhile */
    serve();
    _exit(0);
}
