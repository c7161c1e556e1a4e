#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    long long stack[10000];
    int height = 0;
    char word[64];
    while (scanf("%63s", word) == 1) {
        if (isdigit(word[0]) || (word[0] == '-' && isdigit(word[1]))) {
            stack[height++] = atoll(word);
            continue;
        }
        int dup = strcmp(word, "dup") == 0;
        if (height < (dup ? 1 : 2)) {
            puts("too few");
            return 0;
        }
        long long top = stack[height - 1];
        if (dup) {
            stack[height++] = top;
            continue;
        }
        long long low = stack[height - 2];
        if (strcmp(word, "swap") == 0) {
            stack[height - 1] = low;
            stack[height - 2] = top;
            continue;
        }
        if (top == 0 && (word[0] == '/' || word[0] == '%')) {
            puts("by zero");
            return 0;
        }
        height--;
        switch (word[0]) {
        case '+': stack[height - 1] = low + top; break;
        case '-': stack[height - 1] = low - top; break;
        case '*': stack[height - 1] = low * top; break;
        case '/': stack[height - 1] = low / top; break;
        case '%': stack[height - 1] = low % top; break;
        }
    }
    while (height) printf("%lld\n", stack[--height]);
    return 0;
}
