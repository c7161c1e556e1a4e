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
int limited(const struct json *limits);
int write_to(const char *path, const char *text);
struct names { char **name; size_t count, room; };
int names_in(int fd, struct names *names);         /* sorted */
void sort_names(struct names *names);
bool has(const struct names *names, const char *name);
void free_names(struct names *names);

/* ---- blank.c: what no request changes ---- */
struct blank { int fdinfo, sacrifice, init, control, network; bool own_network; char *unused; };

int make_blank(struct blank *blank, const struct json *order, int program);
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

/* ---- copying.c, changes.c, files.c ---- */
int copy_tree(int source, int target, int depth);
bool is_opaque(int fd);
int write_changes(struct text *out, const struct layout *layout, bool digests, bool paths_only);
int open_regular(int root, const char *path);
int write_file(int root, const char *path, int source, mode_t mode);

/* ---- processes.c: what runs in the box ---- */
int spawn(const struct json *request, const int *fds, size_t count, pid_t *pid);
void kill_since(long long mark, const struct json *keep, const struct blank *blank);
bool end_all(const struct blank *blank, struct text *left);
void stop_all(void);
void wake_stopped(void);
void signal_one(long long pid, int number);
size_t names_of_others(struct text *out, const pid_t *spared, size_t count);

/* ---- sha256.c ---- */
struct sha256 { uint32_t state[8]; uint64_t length; uint8_t block[64]; size_t used; };

void sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
void sha256_end(struct sha256 *sha, char hex[65]);

#endif
