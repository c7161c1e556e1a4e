/* Controls what programs of a sandbox see of the machine: the clock and the random bytes, if the
   sandbox is deterministic, and the owners of files and the names of descriptors, if it has neither
   a user namespace nor /proc.

   Every dynamic program loads it through /etc/ld.so.preload. It needs no header and no library
   other than the program's own C library, so one build serves every image for the machine. clock.py
   writes the settings of a sandbox over `settings` in its copy of the library. */

typedef long i64;
typedef unsigned long u64;
typedef unsigned u32;
struct ts { i64 sec, nsec; };
struct tv { i64 sec, usec; };

static const volatile struct {
  char mark[16];   /* by which clock.py finds this structure */
  i64 fixed;       /* 1: the clock is fixed at `time`; 0: it is `shift` ahead */
  i64 time, shift; /* seconds */
  i64 since, since_nsec; /* real time from which on files were written in a sandbox */
  i64 seeded;      /* 1: random bytes come from `seed` */
  u64 seed;
  i64 user;        /* the id of programs on the machine, shown as 0; or 0 */
  char host[64];   /* the name of the machine, shown if there is a user */
} settings = {.mark = "intercode clock"};

extern int *__errno_location(void);
extern char *program_invocation_short_name;

#if defined(__x86_64__)
enum { UNAME = 63, FCHMODAT = 268, FCHMODAT2 = 452, FCNTL = 72, OPENAT = 257, READLINKAT = 267, FACCESSAT = 269 };
enum { STAT_LINKS = 16, STAT_MODE = 24, STAT_USER = 28, LONG_LINKS = 1 };
enum { GETTIMEOFDAY = 96, GETRUSAGE = 98, TIMES = 100, CLOCK_GETTIME = 228, NEWFSTATAT = 262,
       UTIMENSAT = 280, GETRESUID = 118, GETRESGID = 120, GETRANDOM = 318, STATX = 332 };
enum { STAT_TIMES = 72 };
static i64 syscall_raw(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e) {
  i64 out;
  register i64 r10 __asm__("r10") = d;
  register i64 r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(out) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return out;
}
#elif defined(__aarch64__)
enum { UNAME = 160, FCHMODAT = 53, FCHMODAT2 = 452, FCNTL = 25, OPENAT = 56, READLINKAT = 78, FACCESSAT = 48 };
enum { STAT_LINKS = 20, STAT_MODE = 16, STAT_USER = 24, LONG_LINKS = 0 };
enum { GETTIMEOFDAY = 169, GETRUSAGE = 165, TIMES = 153, CLOCK_GETTIME = 113, NEWFSTATAT = 79,
       UTIMENSAT = 88, GETRESUID = 148, GETRESGID = 150, GETRANDOM = 278, STATX = 291 };
enum { STAT_TIMES = 72 };
static i64 syscall_raw(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e) {
  register i64 x8 __asm__("x8") = n;
  register i64 x0 __asm__("x0") = a;
  register i64 x1 __asm__("x1") = b;
  register i64 x2 __asm__("x2") = c;
  register i64 x3 __asm__("x3") = d;
  register i64 x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
#else
#error "no numbers of system calls for this machine"
#endif

static int set_errno(i64 out) {
  if (out >= 0) return (int)out;
  *__errno_location() = (int)-out;
  return -1;
}

/* ------------------------------------------------------------------ the clock */
static struct ts current_time(int clock) {
  struct ts t = {settings.time, 0};
  if (!settings.fixed) {
    syscall_raw(CLOCK_GETTIME, clock, (i64)&t, 0, 0, 0);
    t.sec += settings.shift;
  }
  return t;
}

/* `mktemp` uses the time since boot as the seed of its first name. */
static int is_mktemp(void) {
  const char *expected = "mktemp", *own = program_invocation_short_name;
  while (*expected && *expected == *own) expected++, own++;
  return *expected == *own;
}

int clock_gettime(int clock, struct ts *t) {
  if (clock == 0 || clock == 5 || clock == 11) /* REALTIME, REALTIME_COARSE, TAI */
    *t = current_time(clock);
  else if (settings.seeded && is_mktemp())
    t->sec = 0, t->nsec = (i64)(settings.seed % 1000000000);
  else
    return set_errno(syscall_raw(CLOCK_GETTIME, clock, (i64)t, 0, 0, 0));
  return 0;
}

int gettimeofday(struct tv *t, void *zone) {
  struct ts time_now = current_time(0);
  if (zone) syscall_raw(GETTIMEOFDAY, 0, (i64)zone, 0, 0, 0);
  if (t) t->sec = time_now.sec, t->usec = time_now.nsec / 1000;
  return 0;
}

i64 time(i64 *t) {
  i64 sec = current_time(0).sec;
  if (t) *t = sec;
  return sec;
}

int timespec_get(struct ts *t, int base) {
  if (base != 1) return 0;
  *t = current_time(0);
  return base;
}

/* Processor time differs between runs: with a fixed clock it is 0. */
int getrusage(int who, i64 *usage) {
  int out = set_errno(syscall_raw(GETRUSAGE, who, (i64)usage, 0, 0, 0));
  if (settings.fixed && out == 0) usage[0] = usage[1] = usage[2] = usage[3] = 0;
  return out;
}

i64 times(i64 *usage) {
  i64 out = syscall_raw(TIMES, (i64)usage, 0, 0, 0, 0);
  if (settings.fixed && usage) usage[0] = usage[1] = usage[2] = usage[3] = 0;
  return settings.fixed ? 0 : out;
}

/* -------------------------------------------------------------- dates of files
   The kernel writes real dates. Dates after `since` are shown as the fixed time. A later date that a
   program sets is stored FUTURE_OFFSET ahead, which distinguishes it from them. */
#define FUTURE_OFFSET 6311433600L /* 200 years */

static i64 visible_time(i64 sec, u32 *nsec, u64 *nsec_long) {
  if (!settings.fixed) return sec + settings.shift;
  if (sec >= settings.since + FUTURE_OFFSET) return sec - FUTURE_OFFSET;
  i64 part = nsec ? (i64)*nsec : (i64)*nsec_long;
  if (sec < settings.since || (sec == settings.since && part < settings.since_nsec)) return sec;
  if (nsec) *nsec = 0;
  if (nsec_long) *nsec_long = 0;
  return settings.time;
}

static i64 stored_time(i64 sec) {
  if (!settings.fixed) return sec - settings.shift;
  return sec >= settings.since ? sec + FUTURE_OFFSET : sec;
}

/* Numbers of virtual devices differ between sandboxes. They are replaced by positions in this list,
   whose last path is on the lower layers. Other devices, which hold new files, come after it. */
static u64 device(u64 real) {
  static const char *const paths[] = {"/", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm",
                                       "/etc/clock.so"};
  enum { COUNT = sizeof paths / sizeof *paths };
  static u64 devices[COUNT];
  u64 status[18]; /* st_dev comes first */
  if (!settings.fixed && !settings.shift && !settings.seeded) return real;
  if ((real >> 8 & 0xfff) != 0) return real;
  for (u64 i = 0; i < COUNT; i++) {
    if (devices[i] == 0 && syscall_raw(NEWFSTATAT, -100, (i64)paths[i], (i64)status, 0, 0) == 0)
      devices[i] = status[0];
    if (devices[i] == real) return i + 1;
  }
  return COUNT + 1;
}

/* The links of /proc count the processes of the whole machine. */
enum { PROC = 2, PROC_ROOT = 1 }; /* its place in the list, and the inode of its root */

static int is_proc(u64 number, u64 inode) { return number == PROC && inode == PROC_ROOT; }

/* ----------------------------------------------------------- owners of files
   Files that sandboxes share are hard links and belong to root of the machine. */
enum { KIND = 0170000, REGULAR = 0100000, LINK = 0120000 };

static int is_shared(u32 user, u32 mode) {
  return settings.user && user == 0 && (mode & KIND) == REGULAR;
}

static void show_owner(u32 *user, u32 *group) {
  if (settings.user == 0) return;
  if (*user == (u32)settings.user || *user == (u32)settings.user + 1) *user = 0;
  if (*group == (u32)settings.user) *group = 0;
}

static int write_ids(u32 *real, u32 *effective, u32 *saved, int number) {
  if (settings.user) return *real = *effective = *saved = 0, 0;
  return set_errno(syscall_raw(number, (i64)real, (i64)effective, (i64)saved, 0, 0));
}

int getresuid(u32 *real, u32 *effective, u32 *saved) {
  return write_ids(real, effective, saved, GETRESUID);
}
int getresgid(u32 *real, u32 *effective, u32 *saved) {
  return write_ids(real, effective, saved, GETRESGID);
}

/* ------------------------------------------------------ name of the machine */
static void copy_host(char *to, u64 size) {
  for (u64 i = 0; i < size && i < sizeof settings.host; i++)
    if (!(to[i] = settings.host[i])) return;
}

int uname(char *names) { /* six names of 65 bytes; the second is the machine's */
  int out = set_errno(syscall_raw(UNAME, (i64)names, 0, 0, 0, 0));
  if (out == 0 && settings.user) copy_host(names + 65, 65);
  return out;
}

int gethostname(char *name, u64 size) {
  char names[6 * 65];
  u64 i = 0;
  if (uname(names) != 0) return -1;
  for (; i < size && names[65 + i]; i++) name[i] = names[65 + i];
  if (i == size) return set_errno(-36); /* ENAMETOOLONG */
  name[i] = 0;
  return 0;
}

/* ------------------------------------------------------ names of descriptors
   The number of the descriptor that a path names, or -1. */
static int descriptor(const char *path) {
  static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
  int number = 0;
  if (settings.user == 0 || !path || path[0] != '/') return -1;
  for (int i = 0; i < 3; i++) {
    const char *a = names[i], *b = path;
    while (*a && *a == *b) a++, b++;
    if (*a == *b) return i;
  }
  for (int i = 0; i < 2; i++) {
    const char *a = directories[i], *b = path;
    while (*a && *a == *b) a++, b++;
    if (*a || !*b) continue;
    while (*b >= '0' && *b <= '9' && number < 100000) number = number * 10 + *b++ - '0';
    return *b ? -1 : number;
  }
  return -1;
}

static int stat_at(int at, const char *path, char *buffer, int flags) {
  int number = flags & 0x100 ? -1 : descriptor(path); /* AT_SYMLINK_NOFOLLOW */
  if (number >= 0) at = number, path = "", flags = 0x1000; /* AT_EMPTY_PATH */
  int out = set_errno(syscall_raw(NEWFSTATAT, at, (i64)path, (i64)buffer, flags, 0));
  u32 *user = (u32 *)(buffer + STAT_USER);
  struct ts *date = (struct ts *)(buffer + STAT_TIMES);
  if (out != 0) return out;
  u64 *place = (u64 *)buffer; /* device and inode */
  place[0] = device(place[0]);
  if (is_shared(*user, *(u32 *)(buffer + STAT_MODE)) || is_proc(place[0], place[1])) {
    if (LONG_LINKS) *(u64 *)(buffer + STAT_LINKS) = 1;
    else *(u32 *)(buffer + STAT_LINKS) = 1;
  }
  show_owner(user, user + 1);
  for (int i = 0; i < 3; i++) date[i].sec = visible_time(date[i].sec, 0, (u64 *)&date[i].nsec);
  return 0;
}

enum { CWD = -100, NO_FOLLOW = 0x100, EMPTY_PATH = 0x1000 };
#define ALIAS(name, target) __typeof__(target) name __attribute__((alias(#target)))

int stat(const char *path, char *s) { return stat_at(CWD, path, s, 0); }
int lstat(const char *path, char *s) { return stat_at(CWD, path, s, NO_FOLLOW); }
int fstat(int fd, char *s) { return stat_at(fd, "", s, EMPTY_PATH); }
int fstatat(int at, const char *path, char *s, int flags) { return stat_at(at, path, s, flags); }
ALIAS(stat64, stat);
ALIAS(lstat64, lstat);
ALIAS(fstat64, fstat);
ALIAS(fstatat64, fstatat);

/* names in programs built before glibc 2.33 */
int __xstat(int v, const char *path, char *s) { return (void)v, stat(path, s); }
int __lxstat(int v, const char *path, char *s) { return (void)v, lstat(path, s); }
int __fxstat(int v, int fd, char *s) { return (void)v, fstat(fd, s); }
int __fxstatat(int v, int at, const char *path, char *s, int flags) {
  return (void)v, stat_at(at, path, s, flags);
}
ALIAS(__xstat64, __xstat);
ALIAS(__lxstat64, __lxstat);
ALIAS(__fxstat64, __fxstat);
ALIAS(__fxstatat64, __fxstatat);

struct statx_date { i64 sec; u32 nsec; int pad; };

int statx(int at, const char *path, int flags, unsigned mask, char *s) {
  int number = flags & NO_FOLLOW ? -1 : descriptor(path);
  if (number >= 0) at = number, path = "", flags |= 0x1000;
  int out = set_errno(syscall_raw(STATX, at, (i64)path, flags, mask, (i64)s));
  u32 *links = (u32 *)(s + 16), *user = links + 1;
  struct statx_date *date = (struct statx_date *)(s + 64); /* accessed, born, changed, modified */
  u32 *major = (u32 *)(s + 136), *minor = major + 1;
  if (out != 0) return out;
  if (*major == 0) *minor = (u32)device((*minor & 0xff) | (u64)(*minor & ~0xffU) << 12);
  int proc = *major == 0 && is_proc(*minor, *(u64 *)(s + 32));
  if (is_shared(*user, *(unsigned short *)(user + 2)) || proc) *links = 1;
  show_owner(user, user + 1);
  for (int i = 0; i < 4; i++) date[i].sec = visible_time(date[i].sec, &date[i].nsec, 0);
  return 0;
}

static int set(int at, const char *path, const struct ts *given, int flags) {
  struct ts dates[2];
  for (int i = 0; given && i < 2; i++) {
    dates[i] = given[i];
    if ((given[i].nsec & ~1L) != 0x3ffffffe) /* UTIME_NOW, UTIME_OMIT */
      dates[i].sec = stored_time(given[i].sec);
  }
  return set_errno(syscall_raw(UTIMENSAT, at, (i64)path, (i64)(given ? dates : 0), flags, 0));
}

static int set_micro(int at, const char *path, const struct tv *given, int flags) {
  struct ts dates[2];
  for (int i = 0; given && i < 2; i++) {
    dates[i].sec = given[i].sec;
    dates[i].nsec = given[i].usec * 1000;
  }
  return set(at, path, given ? dates : 0, flags);
}

int utimensat(int at, const char *path, const struct ts *t, int flags) {
  return set(at, path, t, flags);
}
int futimens(int fd, const struct ts *t) { return set(fd, 0, t, 0); }
int utimes(const char *path, const struct tv *t) { return set_micro(CWD, path, t, 0); }
int lutimes(const char *path, const struct tv *t) { return set_micro(CWD, path, t, NO_FOLLOW); }
int futimes(int fd, const struct tv *t) { return set_micro(fd, 0, t, 0); }
int futimesat(int at, const char *path, const struct tv *t) { return set_micro(at, path, t, 0); }
int utime(const char *path, const i64 *t) {
  struct ts dates[2] = {{t ? t[0] : 0, 0}, {t ? t[1] : 0, 0}};
  return set(CWD, path, t ? dates : 0, 0);
}

/* ----------------------------------------------- opening descriptors by name */
typedef void FILE;
extern void *dlsym(void *, const char *) __attribute__((weak));
extern FILE *fdopen(int, const char *) __attribute__((weak));
enum { DUPFD = 0, DUPFD_CLOEXEC = 1030, CLOSE_ON_EXEC = 02000000, BAD_NUMBER = 9, NO_ENTRY = 2 };

static int open_number(int number, int flags) {
  i64 out = syscall_raw(FCNTL, number, flags & CLOSE_ON_EXEC ? DUPFD_CLOEXEC : DUPFD, 0, 0, 0);
  return set_errno(out == -BAD_NUMBER ? -NO_ENTRY : out);
}

/* The third argument is passed in the same register whether it is variable or not. */
int openat(int at, const char *path, int flags, u32 mode) {
  int number = descriptor(path);
  if (number >= 0) return open_number(number, flags);
  return set_errno(syscall_raw(OPENAT, at, (i64)path, flags, mode, 0));
}
int open(const char *path, int flags, u32 mode) { return openat(CWD, path, flags, mode); }
int __open_2(const char *path, int flags) { return openat(CWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return openat(at, path, flags, 0); }
ALIAS(open64, open);
ALIAS(openat64, openat);
ALIAS(__open, open);
ALIAS(__open64, open);
ALIAS(__open64_2, __open_2);
ALIAS(__openat64_2, __openat_2);

static FILE *open_stream(const char *path, const char *mode, const char *name) {
  int number = descriptor(path);
  if (number >= 0 && fdopen) {
    number = open_number(number, 0);
    return number < 0 ? 0 : fdopen(number, mode);
  }
  FILE *(*next)(const char *, const char *) = dlsym ? dlsym((void *)-1L, name) : 0;
  if (next) return next(path, mode);
  set_errno(-38);
  return 0;
}
FILE *fopen(const char *path, const char *mode) { return open_stream(path, mode, "fopen"); }
FILE *fopen64(const char *path, const char *mode) { return open_stream(path, mode, "fopen64"); }

int faccessat(int at, const char *path, int mode, int flags) {
  char status[256];
  if (descriptor(path) >= 0) return stat_at(at, path, status, 0);
  if (flags) { /* AT_EACCESS: all ids are equal; AT_SYMLINK_NOFOLLOW */
    int out = flags & NO_FOLLOW ? stat_at(at, path, status, NO_FOLLOW) : 0;
    if (out != 0 || flags & NO_FOLLOW) return out;
  }
  return set_errno(syscall_raw(FACCESSAT, at, (i64)path, mode, 0, 0));
}
int access(const char *path, int mode) { return faccessat(CWD, path, mode, 0); }

/* ------------------------------------------------------------ modes of links
   The C library changes a mode without following links through /proc. */
int fchmodat(int at, const char *path, u32 mode, int flags) {
  char status[256];
  i64 out = !flags ? -38 : syscall_raw(FCHMODAT2, at, (i64)path, mode, flags, 0);
  if (out != -38) return set_errno(out); /* ENOSYS: an older kernel */
  if (flags & NO_FOLLOW) {
    if (syscall_raw(NEWFSTATAT, at, (i64)path, (i64)status, flags, 0) == 0
        && (*(u32 *)(status + STAT_MODE) & KIND) == LINK)
      return set_errno(-95); /* EOPNOTSUPP */
  }
  return set_errno(syscall_raw(FCHMODAT, at, (i64)path, mode, 0, 0));
}
int lchmod(const char *path, u32 mode) { return fchmodat(CWD, path, mode, NO_FOLLOW); }

/* ------------------------------------------------------------------- random numbers */
static u64 next(void) { /* splitmix64: Steele, Lea & Flood, 2014 */
  static u64 steps;
  u64 z = settings.seed + ++steps * 0x9e3779b97f4a7c15UL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
  return z ^ (z >> 31);
}

i64 getrandom(void *bytes, u64 count, unsigned flags) {
  u64 word = 0;
  if (!settings.seeded) {
    i64 out = syscall_raw(GETRANDOM, (i64)bytes, (i64)count, flags, 0, 0);
    return out < 0 ? set_errno(out) : out;
  }
  for (u64 i = 0; i < count; i++, word >>= 8) {
    if (i % 8 == 0) word = next();
    ((unsigned char *)bytes)[i] = (unsigned char)word;
  }
  return (i64)count;
}

/* The kernel gives at most 256 bytes at once without interruption. */
void arc4random_buf(void *bytes, u64 count) {
  while (count) {
    u64 part = settings.seeded || count < 256 ? count : 256;
    if (getrandom(bytes, part, 0) != (i64)part) continue;
    bytes = (char *)bytes + part;
    count -= part;
  }
}

int getentropy(void *bytes, u64 count) {
  if (!settings.seeded && count > 256) return set_errno(-5); /* EIO */
  return arc4random_buf(bytes, count), 0;
}

static u64 random_word(void) {
  u64 word;
  if (settings.seeded) return next();
  arc4random_buf(&word, sizeof word);
  return word;
}

u32 arc4random(void) { return (u32)random_word(); }
u32 arc4random_uniform(u32 bound) { return bound < 2 ? 0 : (u32)(random_word() % bound); }
