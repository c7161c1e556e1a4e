/* What a box's keeper is made of. It does what box/keeper.py does, whose requests and answers it
   shares, in a fiftieth of the memory; see compiled.py for how it is built, and when it is not.

   Functions give 0 or a descriptor, and -1 with errno set and, by `failed`, a reason told. */

#ifndef KEEPER_H
#define KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define MOST_FDS 16
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define UNREAD "unread"

/* ---- json.c: messages ---- */
enum kind { NONE, BOOL, NUMBER, TEXT, LIST, OBJECT };

struct json {
    enum kind kind;
    long long number;     /* of a number, and 0 or 1 of a bool */
    char *text;           /* of a text, ended by a NUL that is not part of it */
    size_t length;        /* of the text in bytes, or how many the list or object holds */
    char *key;            /* in an object */
    struct json *first, *next;
};

struct json *json_parse(char *text, size_t length);  /* decodes in place; NULL: not JSON */
void json_free(struct json *value);
const struct json *get(const struct json *object, const char *key);
const char *get_text(const struct json *object, const char *key);  /* "" where there is none */
long long get_number(const struct json *object, const char *key);
bool get_bool(const struct json *object, const char *key);

struct text { char *bytes; size_t length, room; };

void put(struct text *out, const char *bytes, size_t length);
void put_format(struct text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void put_quoted(struct text *out, const char *text);

/* ---- wire.c: JSON with a length in front, and descriptors ---- */
struct message { struct json *body; char *bytes; int fds[MOST_FDS]; size_t count; };

int receive(int socket, struct message *message);  /* 1; 0: the other side hung up */
int reply(int socket, const struct text *body, const int *fds, size_t count);
void forget(struct message *message);              /* closes the descriptors that are left */

/* ---- calls.c: system calls, with reasons ---- */
extern unsigned long key;

int failed(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* -1 */
const char *reason(void);
void begin_reason(void);           /* none so far */
int unshared(int flags);
int mounted(const char *source, const char *target, const char *type, unsigned long flags,
            const char *options);
int unmounted(const char *target);
int pivoted(void);                 /* to the current directory; the old root is gone */
int made_read_only(const char *target);
int detached(int fd);
int attached(int fd, const char *target);
int open_inside(int root, const char *path, int flags, mode_t mode);
int limited(const struct json *limits, bool processes, long long spare_files);
int write_to(const char *path, const char *text);
struct names { char **name; size_t count, room; };
int names_in(int fd, struct names *names);         /* sorted */
int directories_in(int fd, struct names *names);
void sort_names(struct names *names);
bool has(const struct names *names, const char *name);
void free_names(struct names *names);

/* ---- blank.c: what no request changes ---- */
struct blank { int fdinfo, sacrifice, init, control, network; bool own_network; char *unused; };

int make_blank(struct blank *blank, const struct json *order, int program);
int remember_network(struct blank *blank);
bool network_used(const struct blank *blank);
int tell_init(const struct blank *blank, const char *what);

/* ---- init.c: PID 1 ---- */
int start_init(struct blank *blank, bool plain, int program);
int mount_proc(struct blank *blank, const char *stage);
int become_bash(struct blank *blank, const struct json *limits, const struct json *env);
int open_terminal(void);

/* ---- mounts.c: the root ---- */
struct layout { int *uppers; size_t count; int lower, base; };

int prepare(const char *stage, bool own_network);
int lay_out(struct layout *layout, const struct json *spec, const int *fds, size_t count);
int renew(struct layout *layout, const struct json *spec, const int *fds, size_t count);

/* ---- rows.c: what is told of a path ---- */
struct facts { mode_t mode; long long size; bool new; };
struct row { char *path, *target, *digest; const char *kind; unsigned mode; long long size; bool new; };
struct rows { struct row *all; size_t count, room; long long budget; };

void begin_rows(struct rows *rows);
void add_row(struct rows *rows, const char *path, size_t length, const char *kind,
             const struct facts *info, const char *digest, const char *target);
void forget_rows(struct rows *rows, size_t from);
bool may_read(struct rows *rows, long long size, char hex[80]);
int digest_of(int file, char hex[80]);
void put_path(struct text *out, const char *path);
void write_rows(struct text *out, struct rows *rows, bool paths_only);

/* ---- copying.c, changes.c, files.c ---- */
int copy_tree(int source, int target, int depth);
int copy_marks(int source, int target);
int copy_content(int source, int target);          /* of files, with their user attributes */
int remove_tree(const char *name, int parent);
bool is_opaque(int fd);
int write_changes(struct text *out, const struct layout *layout, bool digests, bool paths_only);
int open_regular(int root, const char *path);
int write_file(int root, const char *path, int source, mode_t mode);
void look_around(int fd, int depth);

/* ---- processes.c: what runs in the box ---- */
int spawn(const struct json *request, const int *fds, size_t count, pid_t *pid);
void kill_since(long long mark, const struct json *keep, const struct blank *blank);
bool end_all(const struct blank *blank, struct text *left);
void stop_all(void);
void wake_stopped(void);
void signal_one(long long pid, int number);
size_t names_of_others(struct text *out, const pid_t *spared, size_t count);

/* ---- tracing.c: a process that is halted and made to do things (x86-64) ---- */
#ifdef __x86_64__
#include <sys/user.h>

struct rseq_place { uint64_t address; uint32_t size, signature, flags, padding; };

struct traced { pid_t pid; int inside, memory; struct user_regs_struct before; unsigned long gate; };

int halt(struct traced *p, pid_t pid, int inside);
void let_run(struct traced *p);
int get_registers(struct traced *p, struct user_regs_struct *registers);
int set_registers(struct traced *p, const struct user_regs_struct *registers);
int get_floats(struct traced *p, void *to, size_t *length);
int set_floats(struct traced *p, const void *from, size_t length);
int get_mask(struct traced *p, uint64_t *mask);
int set_mask(struct traced *p, const uint64_t *mask);
void get_rseq(struct traced *p, struct rseq_place *place);
long made_to(struct traced *p, long number, long a, long b, long c, long d, long e, long f);

/* ---- regions.c: what is where in a process's memory ---- */
enum content { OWN, OF_FILE, SHARED, SPECIAL };

struct region { uint64_t from, to, offset; int protection, content; bool stack; char path[512]; };
struct regions { struct region *all; size_t count, room; };

int read_regions(int inside, struct regions *regions);
const struct region *find_region(const struct regions *regions, const char *path);
uint64_t find_gap(const struct regions *a, const struct regions *b, uint64_t length);

/* ---- picture.c: a process as a file; planting.c: a process made of it ---- */
struct action { uint64_t handler, flags, restorer, mask; };
struct alternate { uint64_t address; int flags; uint64_t size; };
struct opened { int number, flags; int64_t position; char path[512]; };

#define SIGNALS 64
#define LONGEST_FLOATS 16384

struct picture {
    char kind[16];
    struct user_regs_struct registers;
    struct action actions[SIGNALS];
    struct alternate alternate;
    struct rseq_place rseq;
    uint64_t mask, bounds[11];
    uint64_t file_mask, regions, files, floats;
};

struct run { uint64_t from, length; };
#endif

int take_picture(pid_t pid, int inside, const struct json *standard);  /* a descriptor */
int plant(pid_t pid, int inside, int picture, const struct json *standard);

/* ---- children.c, serving.c: what was started, and requests ---- */
struct child { pid_t pid, inside; int pidfd, status; };

struct keeper {
    struct blank blank;
    struct layout layout;
    struct json *spec;
    int owner, root, init_fd;  /* the last: readable once PID 1, or in a container a child, ends */
    struct child *children;
    size_t count;
    bool contained;            /* in a container, as its PID 1 */
};

extern struct keeper box;

int pidfd_of(pid_t pid);
pid_t number_inside(int pidfd);        /* what the box calls the process behind a descriptor */
void reap(size_t i);                   /* tell a child's status to who waits for it */
void collect(void);
void end_with_init(void);
size_t background(struct text *out);   /* names of what runs and was not started from here */
int do_end_all(void);
void welcome(bool made);
void serve(void);
void keep_container(char **arguments) __attribute__((noreturn));  /* container.c */

/* ---- sha256.c ---- */
struct sha256 { uint32_t state[8]; uint64_t length; uint8_t block[64]; size_t used; };

void sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
void sha256_end(struct sha256 *sha, char hex[65]);

#endif
