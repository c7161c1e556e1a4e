/* Declarations of the supervisor. build.py compiles it.

   Functions return 0 or a descriptor, or -1 with errno set and a message recorded by `fail`. */

#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct open_how;  /* of linux/openat2.h */

#define MOST_FDS 250  /* the kernel passes at most 253 with a message */
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define UNREAD "unread"
/* bytes of one listing, and of one that is recorded after each action; see change_rows.c */
#define MAX_LISTING (48LL << 20)
#define MAX_RECORDED_LISTING (16LL << 20)

/* ---- common/json.c ---- */
enum kind { NONE, BOOL, NUMBER, TEXT, LIST, OBJECT };

struct json {
    enum kind kind;
    long long number;  /* value of a number; 0 or 1 for a bool */
    char *text;  /* value of a string, with a terminating NUL */
    size_t length;  /* bytes of the string, or members of the list or object */
    char *key;  /* key of a member of an object */
    struct json *first, *next;
};

struct json *json_parse(char *text, size_t length);  /* decodes in place; NULL: invalid */
void json_free(struct json *value);
const struct json *json_get(const struct json *object, const char *key);
const char *json_text(const struct json *object, const char *key);  /* "" if absent */
long long json_number(const struct json *object, const char *key);
bool json_bool(const struct json *object, const char *key);

struct text { char *bytes; size_t length, capacity; };

void append(struct text *out, const char *bytes, size_t length);
void append_format(struct text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void append_shared_memory(struct text *out);
void append_json_text(struct text *out, const char *text);  /* without quotes */
void append_json_string(struct text *out, const char *text);
void append_json_strings(struct text *out, const struct json *object);  /* of strings only */

/* ---- common/protocol.c ---- */
struct message { struct json *body; char *bytes; int fds[MOST_FDS]; size_t count; };

int receive(int socket, struct message *message);  /* 1; 0: the connection is closed */
int reply(int socket, const struct text *body, const int *fds, size_t count);
void free_message(struct message *message);  /* closes the remaining descriptors */

/* ---- common/syscalls.c ---- */
extern unsigned long filter_key;

int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* returns -1 */
const char *error_message(void);
const char *error_text(int code);
void clear_error(void);
int sys_unshare(int flags);
int sys_mount(const char *source, const char *target, const char *type, unsigned long flags,
              const char *options);
int sys_umount(const char *target);
int enter_new_root(void);  /* the current directory, which stays the current one */
int unmount_old_root(void);  /* below it; this waits for the other processors */
int make_read_only(const char *target);
int clear_read_only(const char *target);
int clone_mount(int fd);
int attach_mount(int fd, const char *target);
int attach_mount_at(int fd, int target);
int open_resolved(int directory, const char *path, const struct open_how *how);
int open_in_root(int root, const char *path, int flags, mode_t mode);
int open_proc(const char *path, int flags);  /* a path below /proc */
/* of a sandbox; the kernel counts them by user, and a timer as a pending signal */
#define MOST_PENDING_SIGNALS 1024
#define MOST_QUEUED_BYTES (256 << 10)
#define MOST_LOCKED_BYTES (1 << 20)
#define LEAST_FREE (1 << 16)  /* bytes; with fewer, a file system counts as full */
/* Limits that the kernel counts by user, which `set_limits` may leave out. */
enum { ALL_LIMITS = 0, NO_PROCESS_LIMIT = 1, NO_LIMITS_BY_USER = 3 };
int lower_limit(int resource, unsigned long limit);
int require_limit(int resource, const char *name, unsigned long limit);
int set_limits(const struct json *limits, size_t first, long long extra_files);
int confine_by_landlock(void);
int set_open_mode(int fd, mode_t mode);
int set_mode(int directory, const char *name, mode_t mode);  /* without following links */
long long milliseconds(void);
int time_until(long long time);
void close_from(int first);  /* every descriptor of at least this number */
int write_text(const char *path, const char *text);
/* Read the start of a file as a string, "" on an error. Return its length, or -1. */
ssize_t read_text(int directory, const char *path, char *text, size_t capacity);
/* Return the list, moved if it has to grow to hold one more than `count` members. */
void *ensure_capacity(void *list, size_t count, size_t *capacity, size_t size);
struct names { char **name; size_t count, capacity; };
int list_names(int fd, struct names *names);  /* sorted */
int list_directories(int fd, struct names *names);
void sort_names(struct names *names);
bool contains_name(const struct names *names, const char *name);
void free_names(struct names *names);

/* ---- namespace/isolation.c ---- */
struct isolation {
    int fdinfo, oom_score_fd, init, control, network;
    bool own_network;
    char *initial_counters;
};

void drop_capabilities(unsigned long allowed);  /* a bit for each */
int become_user(const struct json *setup);
int restrict_change_of_user(void);
int create_isolation(struct isolation *isolation, const struct json *setup);
int record_network(struct isolation *isolation);
bool was_network_used(const struct isolation *isolation);
int command_init(const struct isolation *isolation, const char *command);

/* ---- namespace/gateway.c ---- */
int open_gateway(const struct json *gateway);
int gateway_socket(long long number);

/* ---- namespace/init.c ---- */
extern char *process_title;  /* the first argument of this process */

int start_init(struct isolation *isolation, bool plain);
int mount_proc(struct isolation *isolation, const char *stage);
int mount_own_proc(const char *stage);
int bound_user_counts(const char *proc);
void bound_shared_counts(const char *proc);
int open_init_terminal(const struct isolation *isolation, const struct json *limits);
int open_terminal(void);

/* ---- namespace/group.c ---- */
void open_group(const struct json *paths);
void leave_group(void);
pid_t fork_into_group(void);
pid_t fork_sibling(void);
int enter_group(void);
int hide_groups(void);
bool is_group_namespace_shared(void);

/* ---- namespace/mounts.c ---- */
struct layout { int *uppers; size_t count; int lower, hidden_directory; };

int prepare_stage(const char *stage, bool own_network, const char *devices);
int remount_terminals(void);
int mount_root_layout(struct layout *layout, const struct json *spec, const int *fds, size_t count);
int remount_root(struct layout *layout, const struct json *spec, const int *fds, size_t count);

/* ---- namespace/image_build.c ---- */
void run_image_build(const char *descriptor) __attribute__((noreturn));

/* ---- common/change_rows.c ---- */
struct metadata { mode_t mode; long long size; bool new; };
/* A listing: `count` rows that the owner has not been told to drop. */
struct rows {
    struct text *out;
    size_t count;
    long long budget, small_budget;  /* bytes to hash that are left; see hash_file */
    long long space;  /* bytes of rows that are left */
    bool paths_only, truncated, ends_truncated;  /* now, or after the rows to come */
};

void begin_rows(struct rows *rows, struct text *out, bool paths_only, long long space);
void end_rows(struct rows *rows);
void add_row(struct rows *rows, const char *path, const char *kind, const struct metadata *info,
             const char *digest, const char *target);
void take_back_rows(struct rows *rows, size_t from);
int hash_file(struct rows *rows, int file, long long size, char hex[80]);
bool is_unread(const char *digest);
void append_json_path(struct text *out, const char *path);

/* ---- common/copy.c, common/files.c, namespace/overlay_changes.c ---- */
int copy_tree(int source, int target, int depth);
void begin_merge(uid_t owner, int programs);  /* from now on `copy_tree` merges layers */
int copy_user_attributes(int source, int target);
int copy_content(int source, int target);  /* and user attributes */
int remove_tree(const char *name, int parent);
int remove_all(int parent, const char *name);  /* common/remove.c */
int remove_in_root(int root, const char *path, bool whole);
bool is_opaque(int fd);
int write_changes(struct text *out, const struct layout *layout, bool digests, bool paths_only);
int open_outside_proc(int root, const char *path, int flags, struct stat *info);
bool has_identity(int fd, const char *identity);
int open_regular(int root, const char *path);
int describe_file(int root, const char *path, bool follow, struct text *out);
int list_directory(int root, const char *path, struct text *out);
int write_file(int root, const char *path, int source, mode_t mode);
void visit_directories(int fd, int depth);

/* ---- common/channels.c ---- */
int create_terminal(void);
int connect_to_server(const char *path, const char *host, long long port);
int listen_at_port(long long port);

/* ---- common/processes.c ---- */
int spawn(const struct json *request, const int *fds, size_t count, pid_t *pid);
void kill_since(long long mark, const struct json *keep, const struct isolation *isolation);
bool kill_all(const struct isolation *isolation, struct text *left);
void stop_all(void);
void resume_stopped(void);
void signal_process(long long pid, int number);
size_t list_other_processes(struct text *out, const pid_t *excluded, size_t count);

/* ---- checkpoint/ptrace.c (x86-64) ---- */
#ifdef __x86_64__
#include <sys/user.h>

struct rseq_area { uint64_t address; uint32_t size, signature, flags, padding; };

struct tracee {
    pid_t pid;
    int inner_pid, memory_fd;
    struct user_regs_struct saved_registers;
    unsigned long syscall_address;
};

int stop_tracee(struct tracee *p, pid_t pid, int inner_pid);
void release_tracee(struct tracee *p);
int get_registers(struct tracee *p, struct user_regs_struct *registers);
int set_registers(struct tracee *p, const struct user_regs_struct *registers);
int get_fpu_state(struct tracee *p, void *to, size_t *length);
int set_fpu_state(struct tracee *p, const void *from, size_t length);
int get_signal_mask(struct tracee *p, uint64_t *mask);
int set_signal_mask(struct tracee *p, const uint64_t *mask);
void get_rseq(struct tracee *p, struct rseq_area *area);
long remote_syscall(struct tracee *p, long number, long a, long b, long c, long d, long e, long f);

/* ---- checkpoint/memory_map.c ---- */
enum content { ANONYMOUS, FILE_BACKED, SHARED, KERNEL_REGION };

struct region { uint64_t from, to, offset; int protection, content; bool stack; char path[512]; };
struct regions { struct region *items; size_t count, capacity; };

int read_regions(int inner_pid, struct regions *regions);
const struct region *find_region(const struct regions *regions, const char *path);
uint64_t find_free_range(const struct regions *a, const struct regions *b, uint64_t length);

/* ---- checkpoint/checkpoint.c, checkpoint/restore.c ---- */
struct signal_action { uint64_t handler, flags, restorer, mask; };
struct signal_stack { uint64_t address; int flags; uint64_t size; };
struct open_file { int number, flags; int64_t position; char path[512]; };

#define SIGNALS 64
#define MAX_FPU_STATE 16384

struct checkpoint {
    char magic[16];
    struct user_regs_struct registers;
    struct signal_action actions[SIGNALS];
    struct signal_stack signal_stack;
    struct rseq_area rseq;
    uint64_t mask, bounds[11];
    uint64_t umask_value, regions, files, fpu_size;
};

struct page_run { uint64_t from, length; };
#endif

int create_checkpoint(pid_t pid, int inner_pid, const struct json *given_fds);  /* a descriptor */
int restore_checkpoint(pid_t pid, int inner_pid, int checkpoint, const struct json *given_fds);

/* ---- common/children.c, requests.c, common/state.c ---- */
struct child { pid_t pid, inner_pid; int pidfd, status; };

struct supervisor {
    struct isolation isolation;
    struct layout layout;
    struct json *spec;
    uid_t user;  /* of commands, outside of the sandbox */
    int owner, root, init_fd;  /* init_fd: readable once PID 1, or in a container any child, ends */
    struct child *children;
    size_t count;
    /* it has no mounts of its own: it runs in a container, as PID 1, or below a changed root */
    bool in_container;
    bool in_chroot;  /* of both, the second; see chroot/chroot.h */
    bool has_users;  /* commands can run as users other than root */
    bool are_users_counted;  /* and all together may take as much of the kernel as one */
    bool allows_set_user_id;  /* and set-user-ID programs have an effect */
    int proc;  /* /proc, which is not below the changed root; 0: open it by its path */
    uid_t own_user;  /* that of the supervisor below a changed root */
    bool in_domain;  /* in a directory of the machine, like a container; see landlock/landlock.h */
    char *root_path;  /* of that directory */
    size_t root_length;
};

extern struct supervisor sandbox;

int pidfd_of(pid_t pid);
pid_t read_inner_pid(int pidfd);  /* the number inside the sandbox */
void reap(size_t i);  /* sends the exit status to the owner */
void reap_all(void);
void exit_if_init_ended(void);
void exit_after_init(void) __attribute__((noreturn));
void send_report(const char *cause);  /* why the sandbox ends by its own doing */
/* names of processes that the supervisor did not start */
size_t list_background(struct text *out);
int end_all_processes(void);
void send_handshake(bool ready);
void serve(void);
void supervise_container(char **arguments) __attribute__((noreturn));  /* container/container.c */
void run_guard(const char *descriptor) __attribute__((noreturn));  /* chroot/guard.c */
void end_user(const char *number) __attribute__((noreturn));
void copy_programs(const char *layer, const char *directory) __attribute__((noreturn));
int take_command_user(void);  /* chroot/enter.c */
void run_landlock_guard(const char *descriptor) __attribute__((noreturn));  /* landlock/guard.c */
int enter_command_domain(void);  /* landlock/rules.c */
void check_processes(void);  /* landlock/process_limit.c */
const char *take_process_limit(void);

/* ---- common/inherited.c ---- */
void reset_inherited(void);
int drop_inheritable(void);
void start_program(char **arguments) __attribute__((noreturn));

/* ---- common/sha256.c ---- */
struct sha256 { uint32_t state[8]; uint64_t length; uint8_t block[64]; size_t used; };

void sha256_begin(struct sha256 *sha);
#define ZERO_PART ((size_t)1 << 20)  /* bytes */
#define MOST_ZERO_PARTS 512
void sha256_begin_after_zeros(struct sha256 *sha, size_t parts);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
void sha256_end(struct sha256 *sha, char hex[65]);

#endif
