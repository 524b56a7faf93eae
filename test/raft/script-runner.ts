import { assert } from '../../src/lib/assert.ts'
import { type CoreOptions, defaultCoreOptions } from '../../src/raft/options.ts'
import type { Position } from '../../src/raft/types.ts'
import type { MemberList } from './members.ts'
import {
  describeDisk,
  describeNode,
  describePeers,
  describeStamps,
  ScriptCluster,
} from './script-cluster.ts'
import { parseMessage } from './script-message.ts'

/*
The language of the scripts, one command per line:
  cluster voters=1,2,3 [learners=4]       all disks contain the two initial entries, no node leads;
                                          [appendBytesMax=1] or another option of the core
  add 4                                   adds an empty node that no configuration contains yet
  log 2 term=4 [vote=1] terms=2,4         writes node 2's log after the initial entries, and starts
                                          the node with it
  elect 1                                 nodes that can receive from 1 forget their leader, 1
                                          campaigns, and all messages are delivered
  campaign 1 | tick 1 [3] | settle [1,2]  campaigns, advances ticks, or delivers messages and syncs
                                          disks among the given nodes
  deliver 1>2 | repeat 1>2 | lose         delivers the messages in flight on one link; delivers them
                                          and keeps them in flight; loses all messages in flight
  cut 1 from 2,3 | cut 1>2 | heal         cuts both directions or one; restores all links
  say 2>1 voteRequest term=5 last=1/2     delivers a message that no node sent, in the notation of
                                          the trace; [store=2]: from the disk with that store ID
  wipe 3 store=2                          node 3 returns with an empty disk and another store ID
  propose 1 "x" "y" | read 1 | transfer 1 to 2
  change 1 voters=1,2 [learners=3] [stores=3:2]
  disk 1 hold | sync 1 | disk 1 go        the disk stops syncing by itself; completes the pending
                                          sync; syncs by itself again
  crash 1 | restart 1
  damage 3 through 4 [owed=2/6|2/*]       node 3, which is stopped, keeps its log up to this entry;
                                          the rest, or the given part, becomes its missing tail;
                                          *: all entries of that term
  compact 1 through 5 | snapshot 1>3
  clock 1 +5000                           the node's clock is this number of ms ahead of the common
                                          start time
  peers 1 | stamps 1 | ondisk 1           shows the leader's knowledge of its peers; the log times;
                                          the disk state that the node reports
  trace                                   from here on, every delivered message is shown
*/

const ids = (list: string): string[] => (list === '' ? [] : list.split(','))

function named(words: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    words
      .filter((word) => word.includes('='))
      .map((word) => {
        const at = word.indexOf('=')
        return [word.slice(0, at), word.slice(at + 1)]
      }),
  )
}

function members(words: readonly string[]): MemberList {
  const values = named(words)
  const stores = ids(values.get('stores') ?? '').map((pair): [string, number] => {
    const [id = '', store = ''] = pair.split(':')
    return [id, Number(store)]
  })
  return {
    voters: ids(values.get('voters') ?? ''),
    learners: ids(values.get('learners') ?? ''),
    stores: new Map(stores),
  }
}

/** The words that set core options, without those that set the members. */
function options(words: readonly string[]): Partial<CoreOptions> {
  const isOption = ([name]: [string, string]): boolean => name in defaultCoreOptions
  const given = [...named(words)].filter(isOption)
  return Object.fromEntries([
    ['appendBytesMax', 1_000_000],
    ...given.map(([name, value]) => [name, Number(value)]),
  ]) as Partial<CoreOptions>
}

/** Runs the commands of a scene; returns the events in order, then the state of every node. */
export class ScriptRunner {
  #cluster: ScriptCluster | null = null

  run(commands: readonly string[]): string {
    for (const command of commands) this.#do(command)
    const cluster = this.#running()
    const events = cluster.events.splice(0)
    return [...events, ...cluster.ids.map((id) => describeNode(cluster, id))].join('\n')
  }

  #running(): ScriptCluster {
    assert(this.#cluster !== null, 'a script begins with `cluster`')
    return this.#cluster
  }

  #do(command: string): void {
    const words = command.split(/\s+/)
    const [verb = '', a = '', b = '', c = ''] = words
    if (verb === 'cluster') {
      this.#cluster = new ScriptCluster(members(words), options(words))
      return
    }
    const cluster = this.#running()
    const actions: Readonly<Record<string, () => void>> = {
      add: () => cluster.add(a),
      log: () => this.#log(a, words),
      elect: () => cluster.elect(a),
      campaign: () => cluster.campaign(a),
      tick: () => cluster.tick(a, b === '' ? 1 : Number(b)),
      settle: () => (a === '' ? cluster.settle() : cluster.settle(ids(a))),
      deliver: () => cluster.deliver(...this.#link(a)),
      repeat: () => cluster.deliver(...this.#link(a), true),
      say: () => this.#say(a, b, words),
      lose: () => (cluster.flights = []),
      cut: () => this.#cut(a, c),
      heal: () => cluster.heal(),
      propose: () =>
        cluster.propose(a, ...[...command.matchAll(/"([^"]*)"/g)].map((m) => m[1] ?? '')),
      read: () => cluster.step(a, { type: 'read', id: 1 }),
      transfer: () => cluster.step(a, { type: 'transfer', target: c }),
      change: () => cluster.change(a, members(words)),
      disk: () => cluster.holdDisk(a, b === 'hold'),
      sync: () => cluster.sync(a),
      crash: () => cluster.crash(a),
      restart: () => cluster.restart(a),
      wipe: () => cluster.wipe(a, Number(named(words).get('store'))),
      damage: () => cluster.damage(a, Number(c), this.#owed(named(words).get('owed'))),
      compact: () => this.#compact(a, Number(c)),
      snapshot: () => cluster.deliverSnapshot(...this.#link(a)),
      clock: () => cluster.setClock(a, Number(b)),
      peers: () => cluster.events.push(...describePeers(cluster, a)),
      stamps: () => cluster.events.push(describeStamps(cluster, a)),
      ondisk: () => cluster.events.push(describeDisk(cluster, a)),
      trace: () => (cluster.isTracing = true),
    }
    const action = actions[verb]
    assert(action !== undefined, `no such command: ${command}`)
    action()
  }

  #link(word: string): [string, string] {
    const [from = '', to = ''] = word.split('>')
    return [from, to]
  }

  #say(link: string, type: string, words: readonly string[]): void {
    const [from, to] = this.#link(link)
    const store = named(words).get('store')
    const message = parseMessage(from, to, type, words.slice(3).join(' '))
    this.#running().say(message, store === undefined ? undefined : Number(store))
  }

  #log(id: string, words: readonly string[]): void {
    const values = named(words)
    const vote = values.get('vote')
    const log = {
      term: Number(values.get('term')),
      terms: ids(values.get('terms') ?? '').map(Number),
      ...(vote === undefined ? {} : { vote }),
    }
    this.#running().setLog(id, log)
    this.#running().restart(id)
  }

  #cut(from: string, others: string): void {
    const cluster = this.#running()
    if (from.includes('>')) cluster.cut(...this.#link(from))
    for (const other of ids(others)) {
      cluster.cut(from, other)
      cluster.cut(other, from)
    }
  }

  #owed(word: string | undefined): Position | null {
    if (word === undefined) return null
    const [term = '', index = ''] = word.split('/')
    return { term: Number(term), index: index === '*' ? Number.MAX_SAFE_INTEGER : Number(index) }
  }

  #compact(id: string, index: number): void {
    const term = this.#running().core(id).termAt(index) ?? 0
    this.#running().step(id, { type: 'compact', position: { term, index } })
  }
}
