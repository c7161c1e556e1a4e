/* What runs in the box: commands are started as children of the keeper; all others are reached
   through the box's /proc, as their numbers mean nothing out here. See box/inside.py. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIGH 400            /* descriptor numbers that no command is given */
#define PASSES 100          /* over the process list, before a box that starts faster is given up */
#define KILL_PASSES 600     /* the later ones a millisecond apart: what was killed takes its time to go */
#define END_SECONDS 5       /* for killed processes to be gone, on a busy machine */

/* ------------------------------------------------------------------ commands */
static bool executable(const char *path) {
    struct stat info;
    return !access(path, X_OK) && !stat(path, &info) && !S_ISDIR(info.st_mode);
}

/* The program that a name means in the box. */
static bool find(const char *name, const char *path, char *found, size_t room) {
    if (strchr(name, '/')) return (size_t)snprintf(found, room, "%s", name) < room;
    for (;;) {
        size_t part = strcspn(path, ":");
        const char *directory = part ? path : ".";
        int length = snprintf(found, room, "%.*s/%s", (int)(part ? part : 1), directory, name);
        if ((size_t)length < room && executable(found)) return true;
        if (!path[part]) return errno = ENOENT, false;
        path += part + 1;
    }
}

/* Whether no text holds a NUL byte, which would end it. */
static bool whole(const struct json *list) {
    for (const struct json *v = list ? list->first : NULL; v; v = v->next)
        if (v->text && strlen(v->text) != v->length) return false;
    return true;
}

static char **texts(const struct json *list, bool keyed) {
    char **out = calloc((list ? list->length : 0) + 1, sizeof *out);
    size_t count = 0;
    if (!out) abort();
    for (const struct json *v = list ? list->first : NULL; v; v = v->next) {
        const char *text = v->text ? v->text : "";
        if (asprintf(&out[count++], keyed ? "%s=%s" : "%s%s", keyed ? v->key : "", text) < 0) abort();
    }
    return out;
}

static void free_texts(char **list) {
    for (char **each = list; *each; each++) free(*each);
    free(list);
}

/* Sources above all targets, where one would be overwritten before it is copied. */
static void out_of_the_way(const struct json *targets, const int *fds, int *moved, size_t count) {
    bool clash = false;
    for (const struct json *v = targets ? targets->first : NULL; v; v = v->next)
        for (size_t i = 0; i < count; i++) clash |= v->number == fds[i];
    for (size_t i = 0; i < count; i++)
        moved[i] = clash ? fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH) : fds[i];
}

static int start(const char *program, char **argv, char **env, const struct json *targets,
                 const int *fds, size_t count, pid_t *pid) {
    static const int usual[] = {SIGPIPE, SIGINT, SIGXFSZ, SIGCHLD};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    bool given[3] = {false};
    size_t i = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    for (const struct json *v = targets ? targets->first : NULL; v && i < count; v = v->next, i++) {
        posix_spawn_file_actions_adddup2(&actions, fds[i], (int)v->number);
        if (v->number >= 0 && v->number < 3) given[v->number] = true;
    }
    for (int number = 0; number < 3; number++)
        if (!given[number])
            posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0);
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (i = 0; i < 4; i++) sigaddset(&defaults, usual[i]);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK
                                              | POSIX_SPAWN_SETSIGDEF);
    int code = posix_spawn(pid, program, &actions, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    errno = code;
    return code ? -1 : 0;
}

/* Start a program in the box. Not a fork: the kernel lends the child this process's memory until
   it executes. */
int spawn(const struct json *request, const int *fds, size_t count, pid_t *pid) {
    const struct json *argv = get(request, "argv"), *env = get(request, "env");
    const char *cwd = get_text(request, "cwd"), *name;
    char program[PATH_MAX];
    int moved[MOST_FDS], result = -1;
    if (!argv || !argv->first || !argv->first->text) return errno = EINVAL, failed("argv");
    if (!whole(argv) || !whole(env)) return errno = EINVAL, failed("embedded null byte");
    name = argv->first->text;
    char **arguments = texts(argv, false), **variables = texts(env, true);
    out_of_the_way(get(request, "targets"), fds, moved, count);
    if (chdir(cwd)) {
        failed("%s", cwd);
    } else if (!find(name, get_text(env, "PATH"), program, sizeof program)
               || start(program, arguments, variables, get(request, "targets"), moved, count, pid)) {
        failed("%s", name);
    } else {
        result = 0;
    }
    int code = errno;
    /* in a container the program may have closed it by now; it is opened again with each request */
    if (chdir("/") && !box.contained) result = failed("/");
    for (size_t i = 0; i < count; i++)
        if (moved[i] != fds[i] && moved[i] >= 0) close(moved[i]);
    free_texts(arguments);
    free_texts(variables);
    errno = code;
    return result;
}

/* ----------------------------------------------------------------- all others */
/* A live process of the box, held by its directory in /proc. Its state is that of its first thread,
   which may have ended (Z) while others go on. */
struct process { int pid, fd; char state, name[64]; long long started; };

struct crowd { struct process *all; size_t count, room; };

static bool held(struct process *p, const char *number) {
    char path[32], line[1024];
    int threads;
    snprintf(path, sizeof path, "/proc/%.10s", number);
    p->pid = atoi(number);
    if ((p->fd = open(path, DIRECTORY)) < 0) return false;
    int fd = openat(p->fd, "stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    line[got > 0 ? got : 0] = 0;
    char *open_mark = strchr(line, '('), *close_mark = strrchr(line, ')');
    if (open_mark && close_mark) {
        *close_mark = 0;
        snprintf(p->name, sizeof p->name, "%s", open_mark + 1);
        if (sscanf(close_mark + 2, "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                   "%*s %d %*s %lld", &p->state, &threads, &p->started) == 3
            && ((p->state != 'Z' && p->state != 'X') || threads > 1))
            return true;
    }
    close(p->fd);
    return false;
}

/* The processes of the box that have not ended, but for PID 1. */
static void look_round(struct crowd *crowd) {
    struct names names;
    int proc = open("/proc", DIRECTORY);
    memset(crowd, 0, sizeof *crowd);
    if (proc < 0) return;
    if (!names_in(proc, &names)) {
        crowd->all = calloc(names.count + 1, sizeof *crowd->all);
        for (size_t i = 0; i < names.count && crowd->all; i++) {
            const char *name = names.name[i];
            if (isdigit((unsigned char)*name) && strcmp(name, "1")
                && held(&crowd->all[crowd->count], name))
                crowd->count++;
        }
    }
    free_names(&names);
    close(proc);
}

static void let_go(struct crowd *crowd) {
    for (size_t i = 0; i < crowd->count; i++) close(crowd->all[i].fd);
    free(crowd->all);
}

static void send_signal(const struct process *p, int number) {
    syscall(SYS_pidfd_send_signal, p->fd, number, NULL, 0);
}

static bool among(const struct crowd *crowd, int pid, char state) {
    for (size_t i = 0; i < crowd->count; i++)
        if (crowd->all[i].pid == pid) return !state || crowd->all[i].state == state;
    return false;
}

static bool spared(const struct process *p, long long mark, const struct json *keep) {
    if (p->started < mark) return true;
    for (const struct json *v = keep ? keep->first : NULL; v; v = v->next)
        if (v->number == p->pid) return true;
    return false;
}

/* One pass: kill all that is not spared. Tells how many there were. */
static size_t kill_pass(struct crowd *crowd, long long mark, const struct json *keep) {
    size_t killed = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        if (spared(&crowd->all[i], mark, keep)) continue;
        send_signal(&crowd->all[i], SIGKILL);
        killed++;
    }
    return killed;
}

/* Kill what started at `mark` or later. All are stopped first, where PID 1 can do that, so that they
   cannot multiply; then pass by pass, until one finds nothing. */
void kill_since(long long mark, const struct json *keep, const struct blank *blank) {
    struct crowd before, now;
    look_round(&before);
    if (!tell_init(blank, "stop")) {
        look_round(&now);
        kill_pass(&now, mark, keep);
        for (size_t i = 0; i < now.count; i++)
            if (spared(&now.all[i], mark, keep) && !among(&before, now.all[i].pid, 'T'))
                send_signal(&now.all[i], SIGCONT);
        let_go(&now);
    }
    let_go(&before);
    for (int pass = 0; pass < KILL_PASSES; pass++) {
        look_round(&now);
        size_t left = kill_pass(&now, mark, keep);
        let_go(&now);
        if (!left) return;
        if (pass > PASSES) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* Kill every process of the box but PID 1, and wait for them. False with the names of those that do
   not end. */
bool end_all(const struct blank *blank, struct text *left) {
    const struct timespec pause = {0, 1000000};
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        kill_since(0, NULL, blank);
        left->length = 0;
        if (!names_of_others(left, NULL, 0)) return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > END_SECONDS) return false;
        nanosleep(&pause, NULL);
    }
}

/* `name (pid)` of every process of the box but PID 1 and those that are spared, as JSON texts. */
size_t names_of_others(struct text *out, const pid_t *spare, size_t count) {
    struct crowd crowd;
    size_t told = 0;
    look_round(&crowd);
    for (size_t i = 0; i < crowd.count; i++) {
        char text[96];
        bool skip = false;
        for (size_t n = 0; n < count; n++) skip |= spare[n] == crowd.all[i].pid;
        if (skip) continue;
        snprintf(text, sizeof text, "%s (%d)", crowd.all[i].name, crowd.all[i].pid);
        if (told++) put(out, ", ", 2);
        put_quoted(out, text);
    }
    let_go(&crowd);
    return told;
}

static int *stopped;
static size_t stopped_count;

static bool was_stopped(int pid) {
    for (size_t i = 0; i < stopped_count; i++)
        if (stopped[i] == pid) return true;
    return false;
}

/* Stop every process of the box that is not stopped already, until `wake_stopped`. */
void stop_all(void) {
    for (int pass = 0; pass < PASSES; pass++) {
        struct crowd crowd;
        size_t new = 0;
        look_round(&crowd);
        stopped = realloc(stopped, (stopped_count + crowd.count + 1) * sizeof *stopped);
        if (!stopped) abort();
        for (size_t i = 0; i < crowd.count; i++) {
            const struct process *p = &crowd.all[i];
            if (p->state == 'T' || was_stopped(p->pid)) continue;
            send_signal(p, SIGSTOP);
            stopped[stopped_count++] = p->pid;
            new++;
        }
        let_go(&crowd);
        if (!new) return;
    }
}

void wake_stopped(void) {
    struct crowd crowd;
    look_round(&crowd);
    for (size_t i = 0; i < crowd.count; i++)
        if (was_stopped(crowd.all[i].pid)) send_signal(&crowd.all[i], SIGCONT);
    let_go(&crowd);
    stopped_count = 0;
}

/* By its number in the box; PID 1 is out of reach. */
void signal_one(long long pid, int number) {
    struct crowd crowd;
    look_round(&crowd);
    for (size_t i = 0; i < crowd.count; i++)
        if (crowd.all[i].pid == pid) send_signal(&crowd.all[i], number);
    let_go(&crowd);
}
