import { describe, expect, test } from 'vitest'
import { PostureReports } from '../../src/posture/posture-reports.ts'
import { FailedRequestLog } from '../../src/posture/failed-request-log.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { PostureReport } from '../../src/ports/posture.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { ManualClock } from '../api/support/manual-time.ts'

const os = (version: string): PostureReport => ({
  kind: 'os',
  checkId: 'c1',
  type: 'Linux',
  version,
  build: '',
})
const domain = (name: string): PostureReport => ({ kind: 'domain', checkId: 'c2', domain: name })
const process = (path: string, isRunning = true, checkId = 'c3'): PostureReport => ({
  kind: 'process',
  checkId,
  path,
  isRunning,
  hash: 'ab',
  signerFingerprints: [],
})
const woken: PostureReport = { kind: 'endpoint', isWoken: true, isUnlocked: false }

/** Controllers whose soft state the test delivers. */
class Boards {
  readonly clocks: ManualClock[]
  readonly topics: LocalTopic<Uint8Array>[]
  readonly boards: PostureReports[]

  constructor(count: number) {
    const ids = Array.from({ length: count }, (_, at) => `ctrl${at + 1}`)
    this.clocks = ids.map(() => new ManualClock())
    this.topics = ids.map((id) => new LocalTopic<Uint8Array>(id))
    this.boards = ids.map((id, at) => new PostureReports(id, this.topic(at), this.clock(at)))
  }

  topic(at: number): LocalTopic<Uint8Array> {
    const topic = this.topics[at]
    if (topic === undefined) throw new Error(`there is no controller ${at}`)
    return topic
  }

  clock(at: number): ManualClock {
    const clock = this.clocks[at]
    if (clock === undefined) throw new Error(`there is no controller ${at}`)
    return clock
  }

  board(at: number): PostureReports {
    const board = this.boards[at]
    if (board === undefined) throw new Error(`there is no controller ${at}`)
    return board
  }

  /**
   * Delivers the values that one controller has published about an identity to another controller.
   */
  carry(from: number, to: number, key = 'alice'): void {
    if (from !== to) this.topic(to).hear(`ctrl${from + 1}`, key, this.topic(from).own.get(key))
  }

  carryAll(): void {
    for (const from of this.boards.keys()) for (const to of this.boards.keys()) this.carry(from, to)
  }
}

describe('a posture report from a device', () => {
  test('is known on every controller, and is replaced by a later report on the same subject', () => {
    const them = new Boards(3)
    them.board(0).report('alice', 's1', [os('1.0.0'), domain('corp')])
    them.carryAll()
    // The clock of the controller with the later report is behind.
    them.clock(1).advance(-5000)
    them.board(1).report('alice', 's1', [os('2.0.0')])
    them.carryAll()
    for (const board of them.boards) {
      const { os: system, domain: of } = board.of('alice')
      expect([system?.version, of?.domain]).toEqual(['2.0.0', 'corp'])
    }
    expect(them.board(2).of('bob').os).toBeNull()
  })

  test('gives the same result on all controllers, in whatever order the reports arrive', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = seededRandom(seed)
      const them = new Boards(3)
      for (let step = 0; step < 30; step += 1) {
        const at = random.integer(0, 2)
        const reports = [os(`${step}.0.0`), domain(`d${step}`), process(`/p${step % 3}`)]
        if (random.next() < 0.5) {
          them.board(at).report('alice', 's1', [reports[random.integer(0, 2)] ?? woken])
        } else if (random.next() < 0.2) them.board(at).noteMove('alice')
        else them.carry(at, random.integer(0, 2))
      }
      them.carryAll()
      const seen = them.boards.map((board) => [board.of('alice'), board.moves('alice')])
      expect(seen[1], `seed ${seed}`).toEqual(seen[0])
      expect(seen[2], `seed ${seed}`).toEqual(seen[0])
      for (const board of them.boards) board.keepOnly('alice', new Set(['s1']))
      them.carryAll()
      for (const board of them.boards) {
        expect([board.of('alice'), board.moves('alice')], `seed ${seed}, kept`).toEqual(seen[0])
      }
    }
  })

  test('contains each process path only once, with the check ID in the last report', () => {
    const { boards } = new Boards(1)
    boards[0]?.report('alice', 's1', [process('/a'), process('/b'), process('/a', false, 'c9')])
    expect(
      boards[0]?.of('alice').processes.map((one) => [one.path, one.isRunning, one.checkId]),
    ).toEqual([
      ['/b', true, 'c3'],
      ['/a', false, 'c9'],
    ])
  })

  test('is not published again for a minute if it is unchanged', () => {
    const them = new Boards(1)
    them.board(0).report('alice', 's1', [os('1.0.0')])
    const before = them.topic(0).own.get('alice')
    them.clock(0).advance(59_999)
    them.board(0).report('alice', 's1', [os('1.0.0')])
    expect(them.topic(0).own.get('alice')).toBe(before)
    them.clock(0).advance(1)
    them.board(0).report('alice', 's1', [os('1.0.0')])
    expect(them.board(0).of('alice').os?.atMs).toBe(them.clock(0).nowMs())
  })

  test('stays valid when the controller that received it fails, if the device has repeated it to another controller', () => {
    const them = new Boards(2)
    them.board(0).report('alice', 's1', [os('1.0.0')])
    them.carry(0, 1)
    expect(them.board(1).report('alice', 's1', [os('1.0.0')])).toBe('same')
    them.topic(1).hear('ctrl1', 'alice', undefined)
    expect(them.board(1).of('alice').os?.version).toBe('1.0.0')
  })

  test('that a later report replaced does not become valid again when the controller that received the later report fails', () => {
    const them = new Boards(2)
    them.board(0).report('alice', 's1', [domain('corp'), os('1.0.0')])
    them.carry(0, 1)
    them.board(1).report('alice', 's1', [domain('home')])
    them.carry(1, 0)
    them.topic(0).hear('ctrl2', 'alice', undefined)
    expect(them.board(0).of('alice')).toMatchObject({ domain: null, os: { version: '1.0.0' } })
  })

  test('is discarded when the controller that received it leaves the cluster', () => {
    const them = new Boards(2)
    const lost: string[] = []
    them.board(1).onLost((id) => lost.push(id))
    them.board(0).report('alice', 's1', [os('1.0.0')])
    them.carry(0, 1)
    them.topic(1).hear('ctrl1', 'alice', undefined)
    expect(them.board(1).of('alice').os).toBeNull()
    expect(lost).toEqual(['alice'])
  })

  test('about the waking of a device applies only to the API session in which it was sent', () => {
    const them = new Boards(1)
    const board = them.board(0)
    board.report('alice', 's1', [woken])
    const wokenAtMs = them.clock(0).nowMs()
    them.clock(0).advance(1000)
    board.report('alice', 's1', [{ kind: 'endpoint', isWoken: false, isUnlocked: true }])
    const told = { wokenAtMs, unlockedAtMs: wokenAtMs + 1000 }
    expect([...board.endpointsOf('alice')]).toEqual([['s1', told]])
    board.report('alice', 's2', [os('1.0.0')])
    board.keepOnly('alice', new Set(['s2']))
    expect(board.endpointsOf('alice').size).toBe(0)
    expect(board.of('alice').os?.version).toBe('1.0.0')
    board.keepOnly('alice', new Set())
    expect(them.topic(0).own.size).toBe(0)
  })

  test('is limited in size: the oldest processes are evicted, and a report that is too large is refused', () => {
    const board = new Boards(1).board(0)
    const long = (at: number): PostureReport => process(`/${at}/${'x'.repeat(2000)}`)
    for (let at = 0; at < 40; at += 1) expect(board.report('alice', 's1', [long(at)])).toBe('taken')
    const kept = board.of('alice').processes.map(({ path }) => Number(path.split('/')[1]))
    expect(kept.length).toBeLessThan(17)
    expect(kept.at(-1)).toBe(39)
    expect(kept).toEqual([...kept].sort((a, b) => a - b))
    const many = Array.from({ length: 20 }, (_, at) => long(100 + at))
    expect(board.report('alice', 's1', many)).toBe('tooLarge')
    expect(board.of('alice').processes.map(({ path }) => Number(path.split('/')[1]))).toEqual(kept)
  })

  test('takes turns with the reports of other identities when a controller evaluates reports again', () => {
    const board = new Boards(1).board(0)
    for (const id of ['a', 'b', 'c']) board.report(id, 's1', [os('1.0.0')])
    expect(board.reportedHere(2)).toEqual(['a', 'b'])
    expect(board.reportedHere(2)).toEqual(['c', 'a'])
  })
})

describe('A router’s posture verdict (the result of an evaluation by the router)', () => {
  const judged = (routerId: string): PostureReport => ({ kind: 'router', routerId })
  const kindsOf = (board: PostureReports, session = 's1'): string[] => [
    ...(board.of('alice', session).judgedByRouter ?? []),
  ]

  test('replaces all earlier reports of the device, but only in the session for which the router evaluated the posture', () => {
    const them = new Boards(2)
    them.board(0).report('alice', 's1', [os('1.0.0')])
    them.board(0).report('alice', 's1', [judged('er1')])
    them.carryAll()
    for (const board of them.boards) {
      expect(kindsOf(board)).toEqual(['os', 'domain', 'mac', 'process'])
      expect(kindsOf(board, 's2')).toEqual([])
      expect(board.of('alice').judgedByRouter).toBe(undefined)
    }
    them.board(1).report('alice', 's1', [domain('home')])
    them.carryAll()
    for (const board of them.boards) expect(kindsOf(board)).toEqual(['os', 'mac', 'process'])
    expect(them.board(1).report('alice', 's1', [judged('er1')])).toBe('taken')
    them.carryAll()
    for (const board of them.boards) expect(kindsOf(board).length).toBe(4)
    expect(them.board(1).report('alice', 's1', [judged('er1')]), 'reported again').toBe('same')
  })

  test('is discarded when its session ends', () => {
    const them = new Boards(1)
    them.board(0).report('alice', 's1', [judged('er1'), os('1.0.0')])
    them.board(0).keepOnly('alice', new Set(['s2']))
    expect(kindsOf(them.board(0))).toEqual([])
  })
})

describe('recorded failures of service requests', () => {
  const failed = (serviceId: string, atMs: number, size = 10) => ({
    serviceId,
    atMs,
    apiSessionId: 's1',
    serviceName: 'wiki',
    sessionType: 'Dial',
    policyFailures: [{ policyId: 'p', note: 'x'.repeat(size) }],
  })

  test('are returned together with those of other controllers, newest first, up to 100', () => {
    const topic = new LocalTopic<Uint8Array>('ctrl1')
    const other = new LocalTopic<Uint8Array>('ctrl2')
    const board = new FailedRequestLog('ctrl1', topic)
    for (let at = 0; at < 120; at += 1) board.note('alice', failed(`s${at}`, at))
    new FailedRequestLog('ctrl2', other).note('alice', failed('elsewhere', 119))
    topic.hear('ctrl2', 'alice', other.own.get('alice'))
    const found = board.of('alice')
    expect(found).toHaveLength(100)
    expect(found.slice(0, 2).map(({ serviceId }) => serviceId)).toContain('elsewhere')
    expect(found[0]?.policyFailures).toEqual([{ policyId: 'p', note: 'x'.repeat(10) }])
  })

  test('are recorded for one service at most once in ten seconds', () => {
    const board = new FailedRequestLog('ctrl1', new LocalTopic<Uint8Array>('ctrl1'))
    for (const atMs of [0, 1, 9_999, 10_000, 19_999]) board.note('alice', failed('wiki', atMs))
    board.note('alice', failed('other', 19_999))
    board.note('bob', failed('wiki', 1))
    expect(board.of('alice').map(({ atMs }) => atMs)).toEqual([19_999, 10_000, 0])
    expect(board.of('bob')).toHaveLength(1)
  })

  test('are dropped, oldest first, once their total size exceeds the limit', () => {
    const board = new FailedRequestLog('ctrl1', new LocalTopic<Uint8Array>('ctrl1'))
    for (let at = 0; at < 20; at += 1) board.note('alice', failed(`s${at}`, at, 8000))
    const ids = board.of('alice').map(({ serviceId }) => serviceId)
    expect(ids[0]).toBe('s19')
    expect(ids.length).toBeLessThan(5)
  })
})
