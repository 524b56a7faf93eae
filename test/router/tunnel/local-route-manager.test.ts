import { describe, expect, test } from 'vitest'

import {
  ipFailureReason,
  LocalRouteManager,
} from '../../../src/overlay/intercept/local-route-manager.ts'
import { parseCidr } from '../../../src/lib/text/networks.ts'

// Goal: if mode tproxy lacks its capability, the message of the program names the capability, also
// when the command `ip` prints nothing.

const status = (effective: string): string => `Name:\tnode\nCapEff:\t${effective}\nSeccomp:\t2\n`
const FAILED = 'Command failed: ip -4 route flush'

describe('the reason of a failed command ip', () => {
  test('is the error output of the command', () => {
    expect(ipFailureReason('RTNETLINK answers: File exists', FAILED, status('0'))).toBe(
      'RTNETLINK answers: File exists',
    )
  })

  test('names the missing capability if the command prints nothing', () => {
    expect(ipFailureReason('', FAILED, status('0000000000000400'))).toBe(
      `operation not permitted without CAP_NET_ADMIN: ${FAILED}`,
    )
    expect(ipFailureReason('', FAILED, status('0000000000001400'))).toBe(FAILED)
  })
})

test('without CAP_NET_ADMIN, the setup of local routes fails with an error that names the drop-in of the unit', async () => {
  const routes = new LocalRouteManager({
    routerId: 'r',
    run: () => Promise.reject(new Error(ipFailureReason('', FAILED, status('0')))),
    log: { debug() {}, info() {}, warn() {}, error() {} } as never,
  })
  const network = parseCidr('100.64.0.0/10')
  if (network === null) throw new Error('not a network')
  await expect(routes.start(network)).rejects.toThrow(
    /needs the capability CAP_NET_ADMIN: .*drop-ins\/tproxy\.conf/,
  )
})
