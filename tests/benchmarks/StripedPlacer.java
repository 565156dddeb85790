import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Places topics with the placer of Kafka's controller, topic by topic as kafka-reassign-partitions --generate does.
 *
 * <p>Arguments: what to place, where to write the replicas, how often. Prints the seconds of each time.
 */
public class StripedPlacer {
    public static void main(String[] arguments) throws IOException {
        List<UsableBroker> brokers = new ArrayList<>();
        List<PlacementSpec> topics = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(arguments[0]))))) {
            for (int left = in.readInt(); left > 0; left--) {
                int id = in.readInt();
                String rack = in.readUTF();
                brokers.add(new UsableBroker(id, rack.isEmpty() ? Optional.empty() : Optional.of(rack), false));
            }
            for (int left = in.readInt(); left > 0; left--) {
                topics.add(new PlacementSpec(0, in.readInt(), in.readShort()));
            }
        }
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return Uuid.ZERO_UUID;
            }
        };
        List<List<PartitionAssignment>> placed = List.of();
        for (int turn = 0; turn < Integer.parseInt(arguments[2]); turn++) {
            placed = new ArrayList<>(topics.size());
            StripedReplicaPlacer placer = new StripedReplicaPlacer(new Random(0));
            long started = System.nanoTime();
            for (PlacementSpec topic : topics) {
                placed.add(placer.place(topic, cluster).assignments());
            }
            System.out.println((System.nanoTime() - started) / 1e9);
        }
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Path.of(arguments[1]))))) {
            for (List<PartitionAssignment> topic : placed) {
                for (PartitionAssignment partition : topic) {
                    for (int broker : partition.replicas()) {
                        out.writeInt(broker);
                    }
                }
            }
        }
    }
}
