import { AddressBook } from '../../../src/cluster/addresses.ts'
import type { HostEvent } from '../../../src/cluster/link.ts'
import { RosterKeeper } from '../../../src/cluster/roster.ts'
import { Witness } from '../../../src/cluster/witness.ts'
import { assert } from '../../../src/lib/assert.ts'
import { encodeConfiguration } from '../../../src/raft/configuration.ts'
import { controllerIdentity, createAuthority } from '../../cluster/mesh-fixture.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

const NEW_STORE = 2

/**
 * 4 was removed and is let in again with an empty disk. Slowly it is sent the log, in which it is first a member on another
 * disk, then no member, then one again. Whoever let it in has told it the newest configuration.
 */
export async function scenario(): Promise<void> {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3', '4'] }, { appendBytesMax: 1 })
  cluster.elect('1')
  cluster.change('1', { voters: ['1', '2', '3'] })
  cluster.settle()
  cluster.propose('1', 'a', 'b', 'c')
  cluster.settle()
  cluster.wipe('4', NEW_STORE)
  const stores = new Map([['4', NEW_STORE]])
  cluster.change('1', { voters: ['1', '2', '3'], learners: ['4'], stores })
  cluster.settle(['1', '2', '3'])
  const { configurationRecord, configurationIndex } = cluster.core('1').status

  const told: HostEvent[] = []
  const configuration = encodeConfiguration(configurationRecord)
  const roster = { configuration, index: configurationIndex, claims: [] }
  // As the host does with an empty log and state, it starts from what it was told.
  const start = { ...cluster.core('4').status, configurationRecord }
  const keeper = new RosterKeeper(start, roster, {
    selfId: '4',
    storeId: Uint8Array.of(NEW_STORE),
    book: await addressBook(),
    witness: new Witness(1),
    monotonicMs: () => 0,
    onView: () => undefined,
    broadcast: () => undefined,
    post: (event) => told.push(event),
  })
  for (let round = 0; round < 200; round += 1) {
    cluster.deliver('1', '4')
    cluster.settle(['4'])
    const status = cluster.core('4').status
    if (status.configurationIndex > 0) keeper.onStatus(status)
    cluster.deliver('4', '1')
    cluster.settle(['1', '2', '3'])
    if (round % 10 === 0) cluster.tick('1')
  }
  assert(cluster.core('4').fullStatus.commit >= configurationIndex, '4 has caught up')
  const refusal = told.find(({ type }) => type === 'selfRefused')
  assert(refusal === undefined, `I18: 4 takes itself for removed: ${JSON.stringify(refusal)}`)
}

async function addressBook(): Promise<AddressBook> {
  const identity = await controllerIdentity(await createAuthority(), '4')
  return new AddressBook({
    selfId: '4',
    clusterId: 'c',
    advertise: '127.0.0.1:1',
    identity,
    nowMs: 0,
  })
}
