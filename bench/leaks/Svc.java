// SPDX-License-Identifier: Apache-2.0
// A service that keeps direct buffers and forgets to end inflaters.
//
// job: java
//   build: javac -d $OUT/java $HERE/Svc.java
//   start: java -Xmx64m -XX:MaxDirectMemorySize=2g -XX:+PreserveFramePointer -cp $OUT/java Svc
//   after: jcmd $PID Compiler.perfmap
//   expect: grows keepBuffer|unzip|DirectByteBuffer|Inflater
// job: java-nameless
//   start: java -Xmx64m -XX:MaxDirectMemorySize=2g -cp $OUT/java Svc
//   expect: grows Unsafe_AllocateMemory|inflateInit|Unsafe_|libzip|libz|Interpreter
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.Inflater;

public class Svc {
    static final List<ByteBuffer> buffers = new ArrayList<>();
    static final List<Inflater> inflaters = new ArrayList<>();

    static void keepBuffer() {
        buffers.add(ByteBuffer.allocateDirect(20000));
    }

    static void unzip() {
        Inflater inflater = new Inflater(true);
        inflater.setInput(new byte[] {3, 0});
        inflaters.add(inflater);
    }

    public static void main(String[] args) throws Exception {
        System.out.println("leak begins");
        for (long request = 0;; request++) {
            keepBuffer();
            if (request % 4 == 0)
                unzip();
            Thread.sleep(20);
        }
    }
}
