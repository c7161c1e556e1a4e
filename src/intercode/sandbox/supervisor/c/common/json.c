/* Reads and writes JSON as the owner's side does. Bytes that are no UTF-8 come as the surrogates
   U+DC80 to U+DCFF, and go out as they are: the reader makes the surrogates. */

#include "supervisor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 32

struct reader { char *at, *end; };

static struct json *value(struct reader *r, int depth);

static void blanks(struct reader *r) {
    while (r->at < r->end && strchr(" \t\r\n", *r->at)) r->at++;
}

static bool takes(struct reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length)) return false;
    r->at += length;
    return true;
}

static long hex4(struct reader *r) {
    long code = 0;
    if (r->end - r->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

static char *encode(char *out, long code) {
    if (code >= 0xDC80 && code <= 0xDCFF) {
        *out++ = (char)(code - 0xDC00);
    } else if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 63));
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    return out;
}

/* One escape, behind its backslash. NULL for one that there is not. */
static char *escape(struct reader *r, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->end) return NULL;
    char c = *r->at++;
    const char *found = strchr(from, c);
    if (found && c) {
        *out++ = to[found - from];
        return out;
    }
    long code = c == 'u' ? hex4(r) : -1;
    if (code < 0) return NULL;
    if (code >= 0xD800 && code < 0xDC00 && takes(r, "\\u")) {
        long low = hex4(r);
        if (low < 0xDC00 || low > 0xDFFF) return NULL;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return encode(out, code);
}

/* A text, behind its first quote, decoded where it lies: it never grows. */
static char *text(struct reader *r, size_t *length) {
    char *start = r->at, *out = r->at;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            r->at++;
            if (!(out = escape(r, out))) return NULL;
        } else {
            *out++ = *r->at++;
        }
    }
    if (r->at >= r->end) return NULL;
    r->at++;
    *out = 0;
    *length = (size_t)(out - start);
    return start;
}

static bool members(struct reader *r, struct json *into, int depth) {
    char close = into->kind == LIST ? ']' : '}';
    struct json **last = &into->first;
    blanks(r);
    if (r->at < r->end && *r->at == close) return r->at++, true;
    for (;;) {
        char *name = NULL;
        size_t length;
        blanks(r);
        if (into->kind == OBJECT) {
            if (!takes(r, "\"") || !(name = text(r, &length))) return false;
            blanks(r);
            if (!takes(r, ":")) return false;
        }
        struct json *member = value(r, depth + 1);
        if (!member) return false;
        member->key = name;
        *last = member;
        last = &member->next;
        into->length++;
        blanks(r);
        if (r->at < r->end && *r->at == close) return r->at++, true;
        if (!takes(r, ",")) return false;
    }
}

static bool fill(struct reader *r, struct json *v, int depth) {
    if (takes(r, "\"")) return v->kind = TEXT, (v->text = text(r, &v->length)) != NULL;
    if (takes(r, "[")) return v->kind = LIST, members(r, v, depth);
    if (takes(r, "{")) return v->kind = OBJECT, members(r, v, depth);
    if (takes(r, "null")) return true;
    if (takes(r, "true")) return v->kind = BOOL, v->number = 1, true;
    if (takes(r, "false")) return v->kind = BOOL, true;
    char *end;
    v->kind = NUMBER;
    v->number = strtoll(r->at, &end, 10);
    if (end == r->at) return false;
    if (end < r->end && strchr(".eE", *end)) v->number = (long long)strtod(r->at, &end);
    r->at = end;
    return true;
}

static struct json *value(struct reader *r, int depth) {
    struct json *made = calloc(1, sizeof *made);
    blanks(r);
    if (made && depth < DEEPEST && r->at < r->end && fill(r, made, depth)) return made;
    json_free(made);
    return NULL;
}

/* `text` has room for a NUL behind `length`. */
struct json *json_parse(char *bytes, size_t length) {
    struct reader r = {bytes, bytes + length};
    bytes[length] = 0;
    return value(&r, 0);
}

void json_free(struct json *v) {
    while (v) {
        struct json *next = v->next;
        json_free(v->first);
        free(v);
        v = next;
    }
}

const struct json *get(const struct json *object, const char *name) {
    const struct json *v = object ? object->first : NULL;
    while (v && (!v->key || strcmp(v->key, name))) v = v->next;
    return v;
}

const char *get_text(const struct json *object, const char *name) {
    const struct json *v = get(object, name);
    return v && v->kind == TEXT ? v->text : "";
}

long long get_number(const struct json *object, const char *name) {
    const struct json *v = get(object, name);
    return v ? v->number : 0;
}

bool get_bool(const struct json *object, const char *name) {
    return get_number(object, name) != 0;
}

void put(struct text *out, const char *bytes, size_t length) {
    if (out->length + length + 1 > out->room) {
        out->room = (out->length + length + 1) * 2;
        if (!(out->bytes = realloc(out->bytes, out->room))) abort();
    }
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
    out->bytes[out->length] = 0;
}

void put_format(struct text *out, const char *format, ...) {
    char short_one[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(short_one, sizeof short_one, format, arguments);
    va_end(arguments);
    put(out, short_one, (size_t)length < sizeof short_one ? (size_t)length : sizeof short_one - 1);
}

void put_quoted(struct text *out, const char *s) {
    put(out, "\"", 1);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            put(out, "\\", 1);
            put(out, s, 1);
        } else if ((unsigned char)*s < 0x20) {
            put_format(out, "\\u%04x", *s);
        } else {
            put(out, s, 1);
        }
    }
    put(out, "\"", 1);
}
