import { expect, test, vi } from 'vitest'
import { ProcessorShare } from '../../src/lib/bounds/processor-share.ts'
import { Problem } from '../../src/lib/problems.ts'

const limits = {
  processorBurstMs: 20,
  processorSliceMs: 3,
  processorCallersMax: 100,
  waitingRequestsMax: 16,
}

/** A processor share with a clock that the test advances. */
function shareOf(): { share: ProcessorShare; pass: (ms: number) => void } {
  let nowMs = 0
  const share = new ProcessorShare(limits, { monotonicMs: () => nowMs })
  return {
    share,
    pass: (ms) => {
      nowMs += ms
    },
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a caller that has used little processor time is served immediately', () => {
  const { share, pass } = shareOf()
  const ran: number[] = []
  for (let at = 0; at < 5; at += 1) {
    const hasWaited = share.run('a', () => {
      pass(4)
      ran.push(at)
    })
    expect(hasWaited).toBe(false)
  }
  expect(ran).toEqual([0, 1, 2, 3, 4])
})

test('a caller that has used much processor time waits, its requests run in order, and other callers do not wait', async () => {
  const { share, pass } = shareOf()
  const ran: string[] = []
  share.run('a', () => pass(30))
  expect(share.run('a', () => ran.push('a1'))).toBe(true)
  expect(share.run('a', () => ran.push('a2'))).toBe(true)
  expect(share.run('b', () => ran.push('b1'))).toBe(false)
  await turn()
  expect(ran).toEqual(['b1', 'a1', 'a2'])
})

test('callers that wait for processor time take turns', async () => {
  const { share, pass } = shareOf()
  const ran: string[] = []
  for (const caller of ['a', 'b']) share.run(caller, () => pass(30))
  for (const at of [1, 2, 3]) share.run('a', () => ran.push(`a${at}`))
  share.run('b', () => ran.push('b1'))
  await turn()
  expect(ran).toEqual(['a1', 'b1', 'a2', 'a3'])
})

test('a time slice for callers ends after its duration, and the event loop runs before the next slice', async () => {
  const { share, pass } = shareOf()
  const ran: number[] = []
  share.run('a', () => pass(30))
  for (const at of [1, 2]) {
    share.run('a', () => {
      pass(5)
      ran.push(at)
    })
  }
  await turn()
  expect(ran).toEqual([1])
  await turn()
  expect(ran).toEqual([1, 2])
})

test('the recorded processor time of a caller decays over time', () => {
  const { share, pass } = shareOf()
  share.run('a', () => pass(30))
  pass(41)
  expect(share.run('a', () => undefined)).toBe(false)
})

function* counting(count: number, pass: (ms: number) => void): Generator<void, number> {
  for (let at = 0; at < count; at += 1) {
    pass(1)
    yield
  }
  return count
}

test('short work returns its result directly, and work of several steps returns a promise', async () => {
  const { share, pass } = shareOf()
  expect(share.finish('a', counting(2, pass))).toBe(2)
  await expect(share.finish('a', counting(50, pass))).resolves.toBe(50)
})

test('short work of a caller ends before the caller’s next task starts; long work ends after later tasks of the caller', async () => {
  const { share, pass } = shareOf()
  share.run('a', () => pass(30))
  const told: string[] = []
  function* work(name: string, steps: number): Generator<void, void> {
    told.push(`${name} begins`)
    yield* counting(steps, pass)
    told.push(`${name} ends`)
  }
  const ended = [
    ['long', 60],
    ['short', 8],
    ['other', 8],
  ].map(
    ([name, steps]) =>
      new Promise<void>((resolve) => {
        share.run('a', () => resolve(share.finish('a', work(String(name), Number(steps)))))
      }),
  )
  await Promise.all(ended)
  expect(told).toEqual([
    'long begins',
    'short begins',
    'short ends',
    'other begins',
    'other ends',
    'long ends',
  ])
})

test('if a running task of a caller starts another task of this caller, the new task runs immediately, and its processor time is counted once', () => {
  const { share, pass } = shareOf()
  const ran: string[] = []
  share.run('a', () => {
    share.run('a', () => pass(12))
    expect(share.run('b', () => ran.push('of another'))).toBe(false)
  })
  expect(share.run('a', () => ran.push('next'))).toBe(false)
  share.run('b', () => {
    pass(30)
    expect(share.run('b', () => ran.push('beyond its share'))).toBe(false)
  })
  expect(ran).toEqual(['of another', 'next', 'beyond its share'])
})

test('an error in a later step of work rejects the work’s promise', async () => {
  const { share, pass } = shareOf()
  function* failing(): Generator<void, never> {
    yield* counting(10, pass)
    throw new Problem('TIMEOUT')
  }
  await expect(share.finish('a', failing())).rejects.toMatchObject({ code: 'TIMEOUT' })
})

test('a caller that has filled its share of the queue for processor time is refused, and other callers are not refused', () => {
  const { share, pass } = shareOf()
  for (const caller of ['a', 'b']) share.run(caller, () => pass(30))
  const fill = (): void => {
    for (let at = 0; at < 20; at += 1) share.run('a', () => undefined)
  }
  expect(fill).toThrow(Problem)
  expect(share.run('b', () => undefined)).toBe(true)
})

test('after long work, other events get a pause as long as the work took, and after short work there is no pause', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  try {
    // A timer of other code in this process must not count as the pause.
    setTimeout(() => undefined, 1)
    const { share, pass } = shareOf()
    let worked = 0
    function* work(steps: number): Generator<void, void> {
      for (let at = 0; at < steps; at += 1) {
        pass(2)
        yield
      }
      worked += 1
    }
    expect(share.begin('a', () => work(1))).toBeNull()
    let isOver = false
    const long = share.begin('a', () => work(10))?.then(() => (isOver = true))
    while (worked < 2) await turn()
    await vi.advanceTimersByTimeAsync(19)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await long
    expect(isOver).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})
