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
The language of the scripts, one command a line:
  cluster voters=1,2,3 [learners=4]       equal disks with the two forming entries, nobody leads;
                                          [appendBytesMax=1]: or any other option of the core
  add 4                                   an empty node, in no configuration yet
  log 2 term=4 [vote=1] terms=2,4         what node 2's disk holds after the forming entries; starts it from there
  elect 1                                 those who hear 1 forget their leader, 1 campaigns, all settles
  campaign 1 | tick 1 [3] | settle [1,2]  time and messages by hand; settle also lets disks finish
  deliver 1>2 | repeat 1>2 | lose         what is on its way on one link arrives; arrives and stays on its way;
                                          all that is on its way is lost
  cut 1 from 2,3 | cut 1>2 | heal
  say 2>1 voteRequest term=5 last=1/2     a message out of nowhere, in the words of the trace; [store=2]: from that disk
  wipe 3 store=2                          node 3 comes back with an empty disk of another store id
  propose 1 "x" "y" | read 1 | transfer 1 to 2 | change 1 voters=1,2 [learners=3] [stores=3:2]
  disk 1 hold | sync 1 | disk 1 go        a disk writes nothing by itself; what it is at; all again
  crash 1 | restart 1
  damage 3 through 4 [owed=2/6|2/*]       node 3, which is down, keeps its log up to there and owes the rest of it, or what is
                                          said; *: all of that term
  compact 1 through 5 | snapshot 1>3
  clock 1 +5000                           its clock runs so many ms ahead of where all clocks start
  peers 1 | stamps 1 | ondisk 1           shows what a leader knows of the others; log time; what a node says is on disk
  trace                                   from here on every delivered message is shown
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
