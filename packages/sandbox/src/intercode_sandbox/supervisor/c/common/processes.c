/* Starts commands, and lists, signals and kills the processes of the sandbox. Commands are children
   of the supervisor. All others are reached through the sandbox's /proc, because their numbers are
   not valid outside. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_GROUPS 64  /* of one user */
/* over the process list, before a sandbox that starts processes faster is given up */
#define PASSES 100
/* later ones are a millisecond apart, because a killed process takes time to end */
#define KILL_PASSES 600
#define END_SECONDS 5  /* wait for killed processes, on a busy machine */

/* -------------------------------------------------------------------- commands */
static bool is_executable(const char *path) {
    struct stat info;
    return !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) && !stat(path, &info)
        && !S_ISDIR(info.st_mode);
}

/* Find the program with this name in the sandbox. */
static bool find_program(const char *name, const char *path, char *found, size_t capacity) {
    if (strchr(name, '/')) return (size_t)snprintf(found, capacity, "%s", name) < capacity;
    for (;;) {
        size_t part = strcspn(path, ":");
        const char *directory = part ? path : ".";
        int length = snprintf(found, capacity, "%.*s/%s", (int)(part ? part : 1), directory, name);
        if ((size_t)length < capacity && is_executable(found)) return true;
        if (!path[part]) return errno = ENOENT, false;
        path += part + 1;
    }
}

/* Return whether no text holds a NUL byte, which would end it. */
static bool has_no_nul(const struct json *list) {
    for (const struct json *v = list ? list->first : NULL; v; v = v->next)
        if (v->text && strlen(v->text) != v->length) return false;
    return true;
}

static char **string_array(const struct json *list, bool keyed) {
    char **out = calloc((list ? list->length : 0) + 1, sizeof *out);
    size_t count = 0;
    if (!out) abort();
    for (const struct json *v = list ? list->first : NULL; v; v = v->next) {
        const char *text = v->text ? v->text : "";
        if (asprintf(&out[count++], keyed ? "%s=%s" : "%s%s", keyed ? v->key : "", text) < 0)
            abort();
    }
    return out;
}

static void free_string_array(char **list) {
    for (char **each = list; *each; each++) free(*each);
    free(list);
}

/* Duplicate those sources that would be overwritten before they are copied to numbers above all
   targets. */
static void move_descriptors(const struct json *targets, const int *fds, int *moved, size_t count) {
    bool clash = false;
    int above = 0;
    for (const struct json *v = targets ? targets->first : NULL; v; v = v->next) {
        if (v->number >= above) above = (int)v->number + 1;
        for (size_t i = 0; i < count; i++) clash |= v->number == fds[i];
    }
    for (size_t i = 0; i < count; i++)
        moved[i] = clash ? fcntl(fds[i], F_DUPFD_CLOEXEC, above) : fds[i];
}

/* What a new process executes, and why it failed, in memory that it shares with the supervisor. */
struct program {
    const char *path;
    char **argv, **env;
    const struct json *targets, *user;
    const int *fds;
    size_t count;
    bool on_terminal;  /* the descriptor 0 becomes its controlling terminal */
    int *error;
};

/* Give a new process its descriptors; 0, 1 and 2 are /dev/null by default. */
static int take_descriptors(const struct program *p) {
    bool given[3] = {false};
    size_t i = 0;
    for (const struct json *v = p->targets ? p->targets->first : NULL; v && i < p->count;
         v = v->next, i++) {
        int target = (int)v->number;
        if (p->fds[i] == target ? fcntl(target, F_SETFD, 0) : dup2(p->fds[i], target) < 0)
            return -1;
        if (target >= 0 && target < 3) given[target] = true;
    }
    for (int number = 0; number < 3; number++) {
        int fd = given[number] ? number : open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0 || (!given[number] && dup3(fd, number, 0) < 0 && fd != number)) return -1;
        if (fd == number && fcntl(fd, F_SETFD, 0)) return -1;
    }
    return 0;
}

/* Let a user open its pipes and its terminal by name, such as /dev/stdout. Other files may belong to
   somebody outside. */
static void own_streams(const struct program *p, uid_t uid, gid_t gid) {
    for (int fd = 0; fd < 3; fd++) {
        struct stat info;
        if (!fstat(fd, &info) && (S_ISFIFO(info.st_mode) || p->on_terminal)
            && fchown(fd, uid, gid))
            clear_error();  /* it belongs to a user that the sandbox does not know */
    }
}

/* In a new process: become the program's user, other than root. It may share memory with its parent,
   for whose threads the C library would change the user, too. */
static int become_user_of(const struct program *p) {
    const struct json *user = p->user;
    gid_t groups[MAX_GROUPS], gid = (gid_t)json_number(user, "gid");
    uid_t uid = (uid_t)json_number(user, "uid");
    const struct json *list = json_get(user, "groups");
    size_t count = 0;
    if (!sandbox.has_users) return errno = EPERM, -1;
    for (const struct json *v = list ? list->first : NULL; v && count < MAX_GROUPS; v = v->next)
        groups[count++] = (gid_t)v->number;
    own_streams(p, uid, gid);
    return syscall(SYS_setgroups, count, groups) || syscall(SYS_setresgid, gid, gid, gid)
        || syscall(SYS_setresuid, uid, uid, uid) ? -1 : 0;
}

/* In a new process: execute the program. */
static __attribute__((noinline, noreturn)) void execute(const struct program *p, bool in_group) {
    static const int default_signals[] = {SIGPIPE, SIGINT, SIGXFSZ, SIGCHLD, SIGSEGV, SIGBUS,
                                          SIGABRT, SIGILL, SIGFPE};
    sigset_t none;
    sigemptyset(&none);
    setsid();
    for (size_t i = 0; i < sizeof default_signals / sizeof *default_signals; i++)
        signal(default_signals[i], SIG_DFL);
    if ((in_group || !enter_group()) && !hide_groups() && !take_descriptors(p)
        && (!p->on_terminal || !ioctl(0, TIOCSCTTY, 0))
        && (!sandbox.in_chroot || !take_command_user()) && (!p->user || !become_user_of(p))
        && (!sandbox.in_domain || !enter_command_domain())) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(p->path, p->argv, p->env);
    }
    *p->error = errno;
    _exit(127);
}

/* Start a process. The calling thread waits until it has executed its program. */
static int start_process(const struct program *p, pid_t *pid) {
    sigset_t all, before;
    sigfillset(&all);
    *p->error = 0;
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t child = fork_into_group();
    if (child == 0) execute(p, true);
    if (child < 0 && (child = vfork()) == 0) execute(p, false);
    int code = child < 0 ? errno : *p->error;
    if (child > 0 && code) waitpid(child, NULL, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *pid = child;
    errno = code;
    return code ? -1 : 0;
}

static int *shared_error(void) {
    static int *error;
    if (!error) error = mmap(NULL, sizeof *error, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0);
    if (error == MAP_FAILED) abort();
    return error;
}

/* Start a program in the sandbox. The child shares this process's memory until it executes the
   program, as fork(2) would copy it. */
int spawn(const struct json *request, const int *fds, size_t count, pid_t *pid) {
    const struct json *argv = json_get(request, "argv"), *env = json_get(request, "env");
    const char *cwd = json_text(request, "cwd"), *name;
    char program[PATH_MAX];
    int moved[MOST_FDS], result = -1;
    if (!argv || !argv->first || !argv->first->text) return errno = EINVAL, fail("argv");
    if (!has_no_nul(argv) || !has_no_nul(env)) return errno = EINVAL, fail("embedded null byte");
    name = argv->first->text;
    char **arguments = string_array(argv, false), **variables = string_array(env, true);
    move_descriptors(json_get(request, "targets"), fds, moved, count);
    if (chdir(cwd)) {
        fail("%s", cwd);
    } else if (!find_program(name, json_text(env, "PATH"), program, sizeof program)
               || start_process(&(struct program){program, arguments, variables,
                                                  json_get(request, "targets"),
                                                  json_get(request, "user"), moved, count,
                                                  json_bool(request, "on_terminal"),
                                                  shared_error()}, pid)) {
        fail("%s", name);
    } else {
        result = 0;
    }
    int code = errno;
    /* a program in a container may have changed the mode of /; each request opens it again */
    if (chdir("/") && !sandbox.in_container) result = fail("/");
    for (size_t i = 0; i < count; i++)
        if (moved[i] != fds[i] && moved[i] >= 0) close(moved[i]);
    free_string_array(arguments);
    free_string_array(variables);
    errno = code;
    return result;
}

/* --------------------------------------------------------- all other processes */
/* A live process of the sandbox, held by its directory in /proc. `state` is the state of its
   first thread, which may have ended (Z) while others continue. */
struct process { int pid, fd; char state, name[64]; long long started; };

struct process_list { struct process *items; size_t count, capacity; };

/* Return whether a process belongs to the sandbox. Without namespaces, /proc shows all others
   as well, but this process may only signal those of its sandbox. */
static bool is_own_process(pid_t pid) {
    bool shows_others = sandbox.in_chroot || sandbox.in_domain;
    return !shows_others || (pid != getpid() && !kill(pid, 0));
}

static bool open_process(struct process *p, const char *number) {
    char line[1024];
    int threads;
    p->pid = atoi(number);
    if (!is_own_process(p->pid) || (p->fd = open_proc(number, DIRECTORY)) < 0) return false;
    read_text(p->fd, "stat", line, sizeof line);
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

/* List the processes of the sandbox that have not ended, except PID 1. */
static void list_processes(struct process_list *list) {
    struct names names;
    int proc = open_proc("", DIRECTORY);
    memset(list, 0, sizeof *list);
    if (proc < 0) return;
    if (!list_names(proc, &names)) {
        list->items = calloc(names.count + 1, sizeof *list->items);
        for (size_t i = 0; i < names.count && list->items; i++) {
            const char *name = names.name[i];
            if (isdigit((unsigned char)*name) && strcmp(name, "1")
                && open_process(&list->items[list->count], name))
                list->count++;
        }
    }
    free_names(&names);
    close(proc);
}

static void free_processes(struct process_list *list) {
    for (size_t i = 0; i < list->count; i++) close(list->items[i].fd);
    free(list->items);
}

static void send_signal(const struct process *p, int number) {
    syscall(SYS_pidfd_send_signal, p->fd, number, NULL, 0);
}

static bool contains(const struct process_list *list, int pid, char state) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid) return !state || list->items[i].state == state;
    return false;
}

static bool is_excluded(const struct process *p, long long mark, const struct json *keep) {
    if (p->started < mark) return true;
    for (const struct json *v = keep ? keep->first : NULL; v; v = v->next)
        if (v->number == p->pid) return true;
    return false;
}

/* Kill every process that is not excluded. Return how many were killed. */
static size_t kill_pass(struct process_list *list, long long mark, const struct json *keep) {
    size_t killed = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (is_excluded(&list->items[i], mark, keep)) continue;
        send_signal(&list->items[i], SIGKILL);
        killed++;
    }
    return killed;
}

/* Kill every process that started at `mark` or later. PID 1 first stops all processes, if it can,
   so that they cannot multiply. Then kill pass by pass until a pass finds none. */
void kill_since(long long mark, const struct json *keep, const struct isolation *isolation) {
    struct process_list before, now;
    list_processes(&before);
    if (!command_init(isolation, "stop")) {
        list_processes(&now);
        kill_pass(&now, mark, keep);
        for (size_t i = 0; i < now.count; i++)
            if (is_excluded(&now.items[i], mark, keep) && !contains(&before, now.items[i].pid, 'T'))
                send_signal(&now.items[i], SIGCONT);
        free_processes(&now);
    }
    free_processes(&before);
    for (int pass = 0; pass < KILL_PASSES; pass++) {
        list_processes(&now);
        size_t left = kill_pass(&now, mark, keep);
        free_processes(&now);
        if (!left) return;
        if (pass > PASSES) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* Kill every process of the sandbox except PID 1, and wait for them. Return false with the
   names of those that do not end. */
bool kill_all(const struct isolation *isolation, struct text *left) {
    const struct timespec pause = {0, 1000000};
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        kill_since(0, NULL, isolation);
        left->length = 0;
        if (!list_other_processes(left, NULL, 0)) return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > END_SECONDS) return false;
        nanosleep(&pause, NULL);
    }
}

/* Write `name (pid)` for every process of the sandbox, as JSON strings, except PID 1 and those
   in `excluded`. Return their number. */
size_t list_other_processes(struct text *out, const pid_t *excluded, size_t count) {
    struct process_list list;
    size_t written = 0;
    list_processes(&list);
    for (size_t i = 0; i < list.count && out->length < MAX_LISTING; i++) {
        char text[96];
        bool skip = false;
        for (size_t n = 0; n < count; n++) skip |= excluded[n] == list.items[i].pid;
        if (skip) continue;
        snprintf(text, sizeof text, "%s (%d)", list.items[i].name, list.items[i].pid);
        if (written++) append(out, ", ", 2);
        append_json_string(out, text);
    }
    free_processes(&list);
    return written;
}

static int *stopped_pids;
static size_t stopped_count;

static bool was_stopped(int pid) {
    for (size_t i = 0; i < stopped_count; i++)
        if (stopped_pids[i] == pid) return true;
    return false;
}

/* Stop every process of the sandbox that is not stopped already, until `resume_stopped`. */
void stop_all(void) {
    for (int pass = 0; pass < PASSES; pass++) {
        struct process_list list;
        size_t new = 0;
        list_processes(&list);
        stopped_pids = realloc(stopped_pids,
                               (stopped_count + list.count + 1) * sizeof *stopped_pids);
        if (!stopped_pids) abort();
        for (size_t i = 0; i < list.count; i++) {
            const struct process *p = &list.items[i];
            if (p->state == 'T' || was_stopped(p->pid)) continue;
            send_signal(p, SIGSTOP);
            stopped_pids[stopped_count++] = p->pid;
            new++;
        }
        free_processes(&list);
        if (!new) return;
    }
}

void resume_stopped(void) {
    struct process_list list;
    list_processes(&list);
    for (size_t i = 0; i < list.count; i++)
        if (was_stopped(list.items[i].pid)) send_signal(&list.items[i], SIGCONT);
    free_processes(&list);
    stopped_count = 0;
}

/* Send a signal to a process by its number in the sandbox, but not to PID 1. */
void signal_process(long long pid, int number) {
    struct process_list list;
    list_processes(&list);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].pid == pid) send_signal(&list.items[i], number);
    free_processes(&list);
}
