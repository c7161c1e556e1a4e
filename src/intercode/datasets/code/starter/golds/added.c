#include <stdio.h>
#include <string.h>

#define DIGITS 1010

int main(void) {
    static char line[12000];
    while (fgets(line, sizeof line, stdin)) {
        int total[DIGITS] = {0};
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
            int length = strlen(word);
            for (int i = 0; i < length; i++) total[i] += word[length - 1 - i] - '0';
        }
        for (int i = 0; i + 1 < DIGITS; i++) {
            total[i + 1] += total[i] / 10;
            total[i] %= 10;
        }
        int top = DIGITS - 1;
        while (top > 0 && total[top] == 0) top--;
        while (top >= 0) putchar('0' + total[top--]);
        putchar('\n');
    }
    return 0;
}
