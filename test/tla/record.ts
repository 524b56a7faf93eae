import { Problem } from '../../src/lib/problems.ts'
import { command, formCluster, type TestCluster } from '../cluster/cluster-fixture.ts'
import { until } from '../cluster/mesh-fixture.ts'
import { SimulatedCluster } from '../raft/simulated-cluster.ts'
import type { SimulatedNode } from '../raft/simulated-node.ts'
import { observeCores } from './observe.ts'
import { TraceWriter } from './trace.ts'
import type { Trace } from './trace-event.ts'

export interface Recording {
  readonly trace: Trace
  /**
   * The reason why the run ended early: a check of the simulation, or an assertion of the Raft
   * core.
   */
  readonly failure: Error | null
}

async function record(run: () => Promise<void>): Promise<Recording> {
  const writer = new TraceWriter()
  const stop = observeCores(writer)
  let failure: Error | null = null
  try {
    await run()
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error))
  } finally {
    stop()
  }
  return { trace: writer.trace, failure }
}

/**
 * Always distinguishes a disk from another one under the same name, as the mesh does, because the
 * specification distinguishes disks.
 */
class MeshedCluster extends SimulatedCluster {
  override startNode(node: SimulatedNode): void {
    node.isHeardAsStranger = false
    super.startNode(node)
  }
}

/**
 * Runs one seed of the Raft core's simulation, including faults and membership changes, in virtual
 * time.
 */
export async function recordSimulation(seed: number, runMs: number): Promise<Recording> {
  return await record(async () => {
    const cluster = new MeshedCluster(seed)
    // The specification does not model the missing tail of a damaged log.
    cluster.isDamageSpared = true
    await cluster.runUntil(runMs)
  })
}

/**
 * Retries until the proposal is accepted: on a busy machine, elections may follow each other for
 * longer than a cluster node waits.
 */
async function propose(cluster: TestCluster, id: string, text: string): Promise<void> {
  for (;;) {
    try {
      await cluster.node(id).clusterNode.propose(command(text))
      return
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'CLUSTER_NO_LEADER') throw error
      await new Promise((resolve) => setTimeout(resolve, 5))
      await cluster.leader()
    }
  }
}

/**
 * Runs three hosts in this process over gRPC and TLS on loopback, in real time. They elect, accept
 * writes, lose their leader, accept writes without it, and get it back. They share one process, so
 * that all events have one order.
 */
export async function recordHosts(writes: number): Promise<Recording> {
  return await record(async () => {
    const cluster = await formCluster(3)
    const burst = async (ids: readonly string[], name: string): Promise<void> => {
      const fates: Promise<void>[] = []
      for (const id of ids) {
        for (let at = 0; at < writes; at += 1) {
          fates.push(propose(cluster, id, `${name}-${id}-${at}`))
        }
      }
      await Promise.all(fates)
    }
    try {
      await Promise.all(cluster.ids.map(async (id) => await cluster.start(id)))
      const first = await cluster.leader()
      await burst(cluster.ids, 'all')
      await first.kill()
      cluster.nodes.delete(first.id)
      await cluster.leader()
      await burst([...cluster.nodes.keys()], 'without')
      const again = await cluster.start(first.id)
      const count = (await cluster.leader()).effects.length
      await until('the killed one has caught up', () => again.effects.length >= count)
    } finally {
      await cluster.stop()
    }
  })
}
