/* What an owner asks of a box, and what its keeper tells: the same whatever the box is made of. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_TO_GO "500"   /* where memory runs out, rather a command than what controls the box */

struct keeper box;

/* ------------------------------------------------------------------- requests */
/* With the first descriptor as the place for its exit status, and those from `first` on for it. */
static int do_spawn(const struct message *m, size_t first, struct text *out) {
    struct child child = {.status = -1};
    if (m->count < first) return errno = EINVAL, -1;
    if (write(box.blank.sacrifice, FIRST_TO_GO, 3) < 0) return failed("oom_score_adj");
    if (box.contained) files_for_commands(true);
    int result = spawn(m->body, m->fds + first, m->count - first, &child.pid);
    int code = errno;
    if (box.contained) files_for_commands(false);
    if (write(box.blank.sacrifice, "0", 1) < 0) errno = 0;  /* it stays first to go */
    if (result && code == ENOMEM && !box.contained) end_with_init();
    errno = code;
    if (result) return -1;
    if (box.contained) bound_files(child.pid);
    child.status = fcntl(m->fds[0], F_DUPFD_CLOEXEC, 0);
    child.pidfd = pidfd_of(child.pid);
    child.inside = box.contained ? child.pid : number_inside(child.pidfd);
    box.children = realloc(box.children, (box.count + 1) * sizeof child);
    if (!box.children) abort();
    box.children[box.count++] = child;
    put_format(out, ", \"pid\": %d, \"child\": %d", child.inside, child.pid);
    return 0;
}

/* Start a program, and make a process of the picture in the second descriptor in its place. */
static int do_plant(const struct message *m, struct text *out) {
    if (do_spawn(m, 2, out)) return -1;
    struct child *child = &box.children[box.count - 1];
    return plant(child->pid, child->inside, m->fds[1], get(m->body, "standard"));
}

/* A picture of a process that its owner knows by its number outside. */
static int do_picture(const struct message *m, int *given) {
    pid_t pid = (pid_t)get_number(m->body, "child");
    int pidfd = pidfd_of(pid), inside = pidfd < 0 ? -1 : number_inside(pidfd);
    if (pidfd >= 0) close(pidfd);
    if (inside < 0) return errno = ESRCH, -1;
    return (*given = take_picture(pid, inside, get(m->body, "standard"))) < 0 ? -1 : 0;
}

static int do_kill(const struct message *m) {
    long long pid = get_number(m->body, "child");
    for (size_t i = 0; i < box.count; i++)
        if (box.children[i].pid == pid) return kill((pid_t)pid, (int)get_number(m->body, "number"));
    return 0;
}

static int do_changes(const struct message *m, struct text *out, bool paths_only) {
    struct text running = {0};
    bool halted = get_bool(m->body, "still") && background(&running);
    free(running.bytes);
    if (halted) stop_all();
    put_format(out, ", \"%s\": [", paths_only ? "paths" : "rows");
    bool digests = get_bool(m->body, "digests");
    int result = box.contained ? write_differences(out, digests, paths_only)
                               : write_changes(out, &box.layout, digests, paths_only);
    int code = errno;
    put(out, "]", 1);
    if (halted) wake_stopped();
    errno = code;
    return result;
}

static int do_size(struct text *out) {
    struct statvfs info;
    if (fstatvfs(box.layout.uppers[0], &info)) return failed("statvfs");
    unsigned long long unit = info.f_frsize;
    put_format(out, ", \"bytes\": %llu, \"files\": %llu, \"bytes_left\": %llu",
               (info.f_blocks - info.f_bfree) * unit,
               (unsigned long long)(info.f_files - info.f_ffree), info.f_bavail * unit);
    if (info.f_files) put_format(out, ", \"files_left\": %llu", (unsigned long long)info.f_favail);
    else put_format(out, ", \"files_left\": null");
    return 0;
}

int do_end_all(void) {
    struct text left = {0};
    put(&left, "", 0);
    bool ended = end_all(&box.blank, &left);
    if (ended)
        while (box.count) reap(0);
    errno = EBUSY;
    if (!ended) failed("live processes: %s", left.bytes);
    free(left.bytes);
    return ended ? 0 : -1;
}

/* Begin again on the image, with copies of other uppers, while what runs in the box waits. */
static int do_refile(const struct message *m) {
    close(box.root);
    box.root = -1;
    if (renew(&box.layout, box.spec, m->fds, m->count)) return -1;
    return (box.root = open("/", DIRECTORY)) < 0 ? failed("/") : 0;
}

static int do_renew(const struct message *m) {
    if (do_end_all()) return -1;
    if (network_used(&box.blank)) return errno = EBUSY, failed("its network was used");
    if (unshared(CLONE_NEWIPC) || do_refile(m)) return -1;
    return tell_init(&box.blank, "again");
}

static const char *path_of(const struct message *m) {
    const struct json *path = get(m->body, "path");
    bool whole = path && path->text && strlen(path->text) == path->length;
    return whole ? path->text : NULL;
}

static int write_or_open(const struct message *m, const char *path, bool writes, int *given) {
    if (writes) return write_file(box.root, path, m->fds[0], (mode_t)get_number(m->body, "mode"));
    return (*given = open_regular(box.root, path)) < 0 ? -1 : 0;
}

/* Read or write a file: a path cannot hold a NUL byte. Modes that the box's owner has set are no
   hindrance; in a container, where the keeper is no more than that owner, they are changed for it. */
static int do_file(const struct message *m, bool writes, int *given) {
    const char *path = path_of(m);
    if (!path || (writes && !m->count)) return errno = EINVAL, -1;
    int result = write_or_open(m, path, writes, given);
    if (!result || errno != EACCES || !box.contained) return result;
    unlock_way(box.root, path, writes);
    result = write_or_open(m, path, writes, given);
    lock_again();
    return result;
}

static int one_of_many(const struct message *m, struct text *out, int *given) {
    const char *what = get_text(m->body, "do");
    if (box.contained) {
        int result = asked_of_container(what, m, out, given);
        if (result != NOT_OURS) return result;
    }
    if (!strcmp(what, "spawn")) return do_spawn(m, 1, out);
    if (!strcmp(what, "picture")) return do_picture(m, given);
    if (!strcmp(what, "plant")) return do_plant(m, out);
    if (!strcmp(what, "changes")) return do_changes(m, out, false);
    if (!strcmp(what, "changed")) return do_changes(m, out, true);
    if (!strcmp(what, "kill")) return do_kill(m);
    if (!strcmp(what, "size")) return do_size(out);
    if (!strcmp(what, "open")) return do_file(m, false, given);
    if (!strcmp(what, "write")) return do_file(m, true, given);
    if (!strcmp(what, "end_all")) return do_end_all();
    if (!strcmp(what, "renew")) return do_renew(m);
    if (!strcmp(what, "refile")) return do_refile(m);
    if (!strcmp(what, "seal"))
        return (*given = detached(box.layout.uppers[0])) < 0 ? -1 : 0;
    if (!strcmp(what, "upper"))
        return (*given = fcntl(box.layout.uppers[0], F_DUPFD_CLOEXEC, 0)) < 0 ? -1 : 0;
    if (!strcmp(what, "kill_since"))
        return kill_since(get_number(m->body, "mark"), get(m->body, "keep"), &box.blank), 0;
    if (!strcmp(what, "signal"))
        return signal_one(get_number(m->body, "pid"), (int)get_number(m->body, "number")), 0;
    if (!strcmp(what, "freeze"))
        return get_bool(m->body, "on") ? stop_all() : wake_stopped(), 0;
    if (!strcmp(what, "processes")) {
        put_format(out, ", \"processes\": [");
        background(out);
        put(out, "]", 1);
        return 0;
    }
    errno = EINVAL;
    return failed("unknown request %s", what);
}

static void refuse(struct text *out, int code, const char *why) {
    out->length = 0;
    put_format(out, "{\"ok\": false, \"errno\": %d, \"error\": ", code);
    put_quoted(out, why);
    put(out, "}", 1);
}

/* Answer one request. Exits where the owner has gone, or wants the box to end. */
static void answer(void) {
    struct message message;
    struct text out = {0};
    int given = -1;
    if (!receive(box.owner, &message)) _exit(0);
    if (!strcmp(get_text(message.body, "do"), "end")) {
        if (box.contained) end_container();
        kill(box.blank.init, SIGKILL);
        waitpid(box.blank.init, NULL, 0);
        _exit(0);
    }
    begin_reason();
    put_format(&out, "{\"ok\": true");
    if (one_of_many(&message, &out, &given)) {
        int code = errno ? errno : EINVAL;
        refuse(&out, code, *reason() ? reason() : strerror(code));
    } else {
        put(&out, "}", 1);
    }
    forget(&message);
    if (reply(box.owner, &out, &given, given >= 0)) {
        if (given < 0) _exit(0);
        /* too many descriptors of this id are under way (a box can see to that): say so */
        int code = errno;
        refuse(&out, code, strerror(code));
        if (reply(box.owner, &out, NULL, 0)) _exit(0);
    }
    if (given >= 0) close(given);
    free(out.bytes);
}

/* Answer requests until the owner hangs up or the box ends. */
void serve(void) {
    for (;;) {
        struct pollfd polled[box.count + 2];
        size_t count = box.count;
        polled[0] = (struct pollfd){.fd = box.owner, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = box.init_fd, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            polled[i + 2] = (struct pollfd){.fd = box.children[i].pidfd, .events = POLLIN};
        if (poll(polled, count + 2, box.contained ? until_next_look() : -1) < 0) continue;
        if (polled[1].revents && !box.contained) return;
        if (polled[1].revents) collect();
        else for (size_t i = count; i-- > 0;)  /* the last takes the place of one that goes */
            if (polled[i + 2].revents) reap(i);
        if (polled[0].revents) answer();
        if (box.contained) look_at_disk();
    }
}

void welcome(bool made) {
    struct text out = {0};
    if (made) {
        put_format(&out, "{\"ok\": true, \"pid\": %d, \"groups\": {", getpid());
        const struct json *groups = get(box.spec, "groups");
        for (const struct json *v = groups ? groups->first : NULL; v; v = v->next) {
            if (v != groups->first) put(&out, ", ", 2);
            put_quoted(&out, v->key);
            put(&out, ": ", 2);
            put_quoted(&out, v->text ? v->text : "");
        }
        put(&out, "}}", 2);
    } else {
        refuse(&out, errno, reason());
    }
    if (reply(box.owner, &out, NULL, 0) || !made) _exit(1);
    free(out.bytes);
}
