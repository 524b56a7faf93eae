import { TestCertificates } from './test-certificates.ts'
import { plansOf } from './plans.ts'
import { type Result, simulate } from './simulate.ts'
import type { Subject } from './tally.ts'

/** Message from the campaign: the next seed; null ends the worker. */
export interface Order {
  readonly seed: number | null
  readonly subject: Subject
}

// Saved before time becomes virtual: the next order must arrive between two seeds.
const realImmediate = setImmediate
const IDS = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'n8', 'n9']

export async function makeKeyring(): Promise<TestCertificates> {
  return await TestCertificates.make(IDS)
}

async function work(): Promise<void> {
  const keyring = await makeKeyring()
  const orders: Order[] = []
  let wake: () => void = () => undefined
  process.on('message', (order: Order) => {
    orders.push(order)
    wake()
  })
  process.send?.('ready')
  for (;;) {
    while (orders.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    const order = orders.shift()
    if (order === undefined || order.seed === null) break
    const result: Result = await simulate(plansOf[order.subject](order.seed), keyring)
    process.send?.(result)
    await new Promise((resolve) => realImmediate(resolve))
  }
  process.disconnect()
}

if (process.argv[1] === import.meta.filename) await work()
