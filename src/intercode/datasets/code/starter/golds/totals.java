import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;

public class Main {
    public static void main(String[] arguments) throws IOException {
        String text = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        var sums = new TreeMap<String, Long>();
        int at = text.indexOf('\n') + 1;
        while (at < text.length()) {
            var name = new StringBuilder();
            if (text.charAt(at) == '"') {
                for (at++; ; at++) {
                    if (text.charAt(at) == '"' && text.charAt(++at) != '"') break;
                    name.append(text.charAt(at));
                }
            } else {
                while (text.charAt(at) != ',') name.append(text.charAt(at++));
            }
            int end = text.indexOf('\n', at);
            end = end < 0 ? text.length() : end;
            sums.merge(name.toString(), Long.parseLong(text.substring(at + 1, end).trim()), Long::sum);
            at = end + 1;
        }
        sums.forEach((name, sum) -> System.out.println(sum + " " + name));
    }
}
