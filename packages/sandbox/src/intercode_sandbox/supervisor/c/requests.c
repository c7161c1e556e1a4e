/* Receives the requests of the owner, and handles those that are the same in all tiers. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* oom_score_adj of commands: if memory runs out, the kernel kills a command first */
#define COMMAND_OOM_SCORE "500"

/* -------------------------------------------------------------------- requests */
/* Start a program. The first descriptor receives its exit status; those from `first` on are
   passed to it. */
static int do_spawn(const struct message *m, size_t first, struct text *out) {
    struct child child = {.status = -1};
    if (m->count < first) return errno = EINVAL, -1;
    /* in a container a lower score than that of its processes may be forbidden */
    if (write(sandbox.isolation.oom_score_fd, COMMAND_OOM_SCORE, 3) < 0 && !sandbox.in_chroot
        && !sandbox.in_domain)
        return fail("oom_score_adj");
    if (sandbox.in_container) set_command_file_limit(true);
    int result = spawn(m->body, m->fds + first, m->count - first, &child.pid);
    int code = errno;
    if (sandbox.in_container) set_command_file_limit(false);
    /* only commands keep the high score */
    if (write(sandbox.isolation.oom_score_fd, "0", 1) < 0) errno = 0;
    if (result && code == ENOMEM && !sandbox.in_container) exit_if_init_ended();
    errno = code;
    if (result) return -1;
    if (sandbox.in_container && !sandbox.in_chroot && !sandbox.in_domain)
        limit_child_files(child.pid);
    child.status = fcntl(m->fds[0], F_DUPFD_CLOEXEC, 0);
    child.pidfd = pidfd_of(child.pid);
    child.inner_pid = sandbox.in_container ? child.pid : read_inner_pid(child.pidfd);
    sandbox.children = realloc(sandbox.children, (sandbox.count + 1) * sizeof child);
    if (!sandbox.children) abort();
    sandbox.children[sandbox.count++] = child;
    append_format(out, ", \"pid\": %d, \"child\": %d", child.inner_pid, child.pid);
    return 0;
}

/* Start a program, and restore the checkpoint in the second descriptor in its place. */
static int do_restore_checkpoint(const struct message *m, struct text *out) {
    if (do_spawn(m, 2, out)) return -1;
    struct child *child = &sandbox.children[sandbox.count - 1];
    return restore_checkpoint(child->pid, child->inner_pid, m->fds[1],
                              json_get(m->body, "given_fds"));
}

/* Write a checkpoint of a process, which the owner names by its number outside. */
static int do_checkpoint(const struct message *m, int *result_fd) {
    pid_t pid = (pid_t)json_number(m->body, "child");
    int pidfd = pidfd_of(pid), inner_pid = pidfd < 0 ? -1 : read_inner_pid(pidfd);
    if (pidfd >= 0) close(pidfd);
    if (inner_pid < 0) return errno = ESRCH, -1;
    return (*result_fd = create_checkpoint(pid, inner_pid, json_get(m->body, "given_fds"))) < 0 ? -1
        : 0;
}

static int do_kill(const struct message *m) {
    long long pid = json_number(m->body, "child");
    for (size_t i = 0; i < sandbox.count; i++)
        if (sandbox.children[i].pid == pid)
            return kill((pid_t)pid, (int)json_number(m->body, "number"));
    return 0;
}

static int do_changes(const struct message *m, struct text *out, bool paths_only) {
    struct text running = {0};
    bool paused = json_bool(m->body, "pause") && list_background(&running);
    free(running.bytes);
    if (paused) stop_all();
    bool digests = json_bool(m->body, "digests");
    int result = sandbox.in_container ? write_differences(out, digests, paths_only)
                               : write_changes(out, &sandbox.layout, digests, paths_only);
    int code = errno;
    if (paused) resume_stopped();
    errno = code;
    return result;
}

/* Append whether /dev/shm is full: it is a file system of its own. */
void append_shared_memory(struct text *out) {
    struct statvfs info;
    if (statvfs("/dev/shm", &info)) return;
    bool full = info.f_bavail * info.f_frsize < LEAST_FREE || (info.f_files && !info.f_favail);
    append_format(out, ", \"shared_memory_full\": %s", full ? "true" : "false");
}

static int do_size(struct text *out) {
    struct statvfs info;
    if (fstatvfs(sandbox.layout.uppers[0], &info)) return fail("statvfs");
    unsigned long long unit = info.f_frsize;
    append_format(out, ", \"bytes\": %llu, \"files\": %llu, \"bytes_left\": %llu",
                  (info.f_blocks - info.f_bfree) * unit,
                  (unsigned long long)(info.f_files - info.f_ffree), info.f_bavail * unit);
    if (info.f_files)
        append_format(out, ", \"files_left\": %llu", (unsigned long long)info.f_favail);
    else append_format(out, ", \"files_left\": null");
    append_shared_memory(out);
    return 0;
}

/* Replace the root by a fresh one on the image, with copies of the given upper layers. The owner
   pauses the processes of the sandbox first. */
static int do_replace_files(const struct message *m) {
    close(sandbox.root);
    int result = remount_root(&sandbox.layout, sandbox.spec, m->fds, m->count), code = errno;
    sandbox.root = open("/", DIRECTORY);  /* also after an error, when it is the old one */
    return sandbox.root < 0 ? fail("/") : (errno = code, result);
}

/* A new IPC namespace has the kernel's default bounds. */
static int recycle_ipc(void) {
    if (sys_unshare(CLONE_NEWIPC) || clear_read_only("/proc/sys")) return -1;
    bound_shared_counts("/proc");
    return make_read_only("/proc/sys");
}

static int do_recycle(const struct message *m) {
    if (end_all_processes()) return -1;
    if (was_network_used(&sandbox.isolation))
        return errno = EBUSY, fail("the network of the sandbox was used");
    if (recycle_ipc() || remount_terminals() || do_replace_files(m)) return -1;
    return command_init(&sandbox.isolation, "reset");
}

static const char *request_path(const struct message *m) {
    const struct json *path = json_get(m->body, "path");
    bool whole = path && path->text && strlen(path->text) == path->length;
    return whole ? path->text : NULL;
}

enum file_access { OPEN_FILE, WRITE_FILE, DESCRIBE_FILE, LIST_FILES, REMOVE_FILE };

static int access_file(const struct message *m, const char *path, enum file_access access,
                       struct text *out, int *result_fd) {
    if (access == WRITE_FILE)
        return write_file(sandbox.root, path, m->fds[0], (mode_t)json_number(m->body, "mode"));
    if (access == DESCRIBE_FILE)
        return describe_file(sandbox.root, path, json_bool(m->body, "follow"), out);
    if (access == LIST_FILES) return list_directory(sandbox.root, path, out);
    if (access == REMOVE_FILE)
        return remove_in_root(sandbox.root, path, json_bool(m->body, "recursive"));
    return (*result_fd = open_regular(sandbox.root, path)) < 0 ? -1 : 0;
}

/* Access a file with any mode. The supervisor of a container has only the rights of the files'
   owner, so it changes their modes meanwhile. */
static int do_file(const struct message *m, enum file_access access, struct text *out,
                   int *result_fd) {
    const char *path = request_path(m);
    if (!path || (access == WRITE_FILE && !m->count)) return errno = EINVAL, -1;
    int result = access_file(m, path, access, out, result_fd);
    if (!result || errno != EACCES || !sandbox.in_container) return result;
    if (access == REMOVE_FILE) grant_parent_access(sandbox.root, path);
    else grant_path_access(sandbox.root, path, access == WRITE_FILE);
    result = access_file(m, path, access, out, result_fd);
    restore_modes();
    return result;
}

static int do_connect(const struct message *m, int *result_fd) {
    const char *path = json_get(m->body, "path") ? request_path(m) : "";
    if (!path) return errno = EINVAL, -1;
    *result_fd = connect_to_server(path, json_text(m->body, "host"), json_number(m->body, "port"));
    return *result_fd < 0 ? -1 : 0;
}

static int dispatch(const struct message *m, struct text *out, int *result_fd) {
    const char *operation = json_text(m->body, "do");
    if (sandbox.in_container) {
        int result = handle_scanned_request(operation, m, out, result_fd);
        if (result != NOT_HANDLED) return result;
    }
    if (!strcmp(operation, "spawn")) return do_spawn(m, 1, out);
    if (!strcmp(operation, "checkpoint")) return do_checkpoint(m, result_fd);
    if (!strcmp(operation, "restore_checkpoint")) return do_restore_checkpoint(m, out);
    if (!strcmp(operation, "changes")) return do_changes(m, out, false);
    if (!strcmp(operation, "changed_paths")) return do_changes(m, out, true);
    if (!strcmp(operation, "kill")) return do_kill(m);
    if (!strcmp(operation, "size")) return do_size(out);
    if (!strcmp(operation, "open")) return do_file(m, OPEN_FILE, out, result_fd);
    if (!strcmp(operation, "write")) return do_file(m, WRITE_FILE, out, result_fd);
    if (!strcmp(operation, "file")) return do_file(m, DESCRIBE_FILE, out, result_fd);
    if (!strcmp(operation, "files")) return do_file(m, LIST_FILES, out, result_fd);
    if (!strcmp(operation, "remove")) return do_file(m, REMOVE_FILE, out, result_fd);
    if (!strcmp(operation, "end_all")) return end_all_processes();
    if (!strcmp(operation, "recycle")) return do_recycle(m);
    if (!strcmp(operation, "replace_files")) return do_replace_files(m);
    if (!strcmp(operation, "seal"))
        return (*result_fd = clone_mount(sandbox.layout.uppers[0])) < 0 ? -1 : 0;
    if (!strcmp(operation, "upper"))
        return (*result_fd = fcntl(sandbox.layout.uppers[0], F_DUPFD_CLOEXEC, 0)) < 0 ? -1 : 0;
    if (!strcmp(operation, "terminal")) return (*result_fd = create_terminal()) < 0 ? -1 : 0;
    if (!strcmp(operation, "connect")) return do_connect(m, result_fd);
    if (!strcmp(operation, "listen"))
        return (*result_fd = listen_at_port(json_number(m->body, "port"))) < 0 ? -1 : 0;
    if (!strcmp(operation, "gateway"))
        return (*result_fd = gateway_socket(json_number(m->body, "number"))) < 0 ? -1 : 0;
    if (!strcmp(operation, "kill_since"))
        return kill_since(json_number(m->body, "mark"), json_get(m->body, "keep"),
                          &sandbox.isolation), 0;
    if (!strcmp(operation, "signal"))
        return signal_process(json_number(m->body, "pid"), (int)json_number(m->body, "number")), 0;
    if (!strcmp(operation, "freeze"))
        return json_bool(m->body, "on") ? stop_all() : resume_stopped(), 0;
    if (!strcmp(operation, "processes")) {
        append_format(out, ", \"processes\": [");
        list_background(out);
        append(out, "]", 1);
        return 0;
    }
    errno = EINVAL;
    return fail("unknown request %s", operation);
}

static void write_error(struct text *out, int code, const char *why) {
    out->length = 0;
    append_format(out, "{\"ok\": false, \"errno\": %d, \"error\": ", code);
    append_json_string(out, why);
    append(out, "}", 1);
}

/* Answer one request. Exits when the owner is gone or asks for the end. */
static void handle_request(void) {
    struct message message;
    struct text out = {0};
    int result_fd = -1;
    if (!receive(sandbox.owner, &message)) _exit(0);
    if (!strcmp(json_text(message.body, "do"), "end")) {
        if (sandbox.in_container) end_container();
        kill(sandbox.isolation.init, SIGKILL);
        while (sandbox.count) reap(0);  /* PID 1 ends only when all processes are collected */
        waitpid(sandbox.isolation.init, NULL, 0);
        _exit(0);
    }
    clear_error();
    append_format(&out, "{\"ok\": true");
    if (dispatch(&message, &out, &result_fd)) {
        int code = errno ? errno : EINVAL;
        write_error(&out, code, *error_message() ? error_message() : error_text(code));
    } else {
        append(&out, "}", 1);
    }
    free_message(&message);
    if (reply(sandbox.owner, &out, &result_fd, result_fd >= 0)) {
        if (result_fd < 0) _exit(0);
        /* too many descriptors of this user are in flight, which a sandbox can cause */
        int code = errno;
        write_error(&out, code, error_text(code));
        if (reply(sandbox.owner, &out, NULL, 0)) _exit(0);
    }
    if (result_fd >= 0) close(result_fd);
    free(out.bytes);
}

void send_report(const char *cause) {
    char bytes[256];
    struct text report = {bytes, 0, sizeof bytes};  /* large enough: nothing is allocated */
    append_format(&report, "{\"ok\": false, \"errno\": 0, \"error\": \"\", \"lost\": \"%s\"}", cause);
    reply(sandbox.owner, &report, NULL, 0);
}

/* Report a crash and exit. In a container, any process can send the signal; that is ignored. */
static void report_crash(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (info->si_code <= 0 && (info->si_code != SI_TKILL || info->si_pid != getpid())) return;
    send_report("the supervisor crashed");
    _exit(1);
}

/* Report crashes to the owner, because only files and processes of the sandbox can cause one. The
   handler has a stack of its own: the other one may be used up. No signal interrupts the handler,
   because that stack has room for few: a process in a container could send many at once. */
static void report_crashes(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    static char stack[1 << 16];  /* a signal's frame has 11 KB where the processor has AMX */
    struct sigaction action = {.sa_sigaction = report_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigfillset(&action.sa_mask);
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL)) return;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* Answer requests until the owner closes the connection or the sandbox ends. */
void serve(void) {
    report_crashes();
    for (;;) {
        struct pollfd polled[sandbox.count + 2];
        size_t count = sandbox.count;
        polled[0] = (struct pollfd){.fd = sandbox.owner, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = sandbox.init_fd, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            polled[i + 2] = (struct pollfd){.fd = sandbox.children[i].pidfd, .events = POLLIN};
        if (poll(polled, count + 2, sandbox.in_container ? disk_check_timeout() : -1) < 0) continue;
        if (polled[1].revents && !sandbox.in_container) exit_after_init();
        if (polled[1].revents) reap_all();
        /* reap() moves the last child to the place of a reaped one */
        else for (size_t i = count; i-- > 0;)
            if (polled[i + 2].revents) reap(i);
        if (polled[0].revents) handle_request();
        if (sandbox.in_container) check_disk();
        if (sandbox.in_domain) check_processes();
    }
}

/* Return a descriptor of the diagnostics of the sandbox's sockets, or -1 if a control group counts
   their memory, or if they are those of the machine. */
static int open_socket_diagnostics(void) {
    const struct json *groups = json_get(sandbox.spec, "cgroups");
    if (sandbox.in_container || !sandbox.isolation.own_network || (groups && groups->first))
        return -1;
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* Answer with the diagnostics of sockets, or without if no descriptor can be passed. */
void send_handshake(bool ready) {
    struct text out = {0};
    int diagnostics = ready ? open_socket_diagnostics() : -1;
    if (ready) {
        append_format(&out, "{\"ok\": true, \"pid\": %d, \"user\": %u, \"template\": %lld, "
                      "\"cgroups\": ", getpid(), sandbox.user, json_number(sandbox.spec, "template"));
        append_json_strings(&out, json_get(sandbox.spec, "cgroups"));
        append(&out, "}", 1);
    } else {
        write_error(&out, errno, error_message());
    }
    if ((diagnostics < 0 || reply(sandbox.owner, &out, &diagnostics, 1))
        && (reply(sandbox.owner, &out, NULL, 0) || !ready))
        _exit(1);
    if (diagnostics >= 0) close(diagnostics);
    free(out.bytes);
}
