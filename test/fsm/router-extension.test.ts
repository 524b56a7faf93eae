import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import {
  CommandKind,
  RouterExtendSchema,
  RouterExtendVerifySchema,
} from '../../proto/gen/command_pb.ts'
import type { Router } from '../../src/entities/kinds/router.ts'
import { createEnrollmentActor } from '../../src/ports/actor.ts'
import type { Outcome } from '../../src/ports/proposer.ts'
import { formedState } from './support/log.ts'

class Extending {
  readonly #formed = formedState()

  constructor() {
    const { log, state } = this.#formed
    for (const id of ['r1', 'r2']) {
      log.create('edgeRouter', id, { name: id })
      state.put('router', {
        ...state.get('router', id),
        id,
        isVerified: true,
        fingerprint: `print of ${id}`,
        certPem: `pem of ${id}`,
      })
    }
  }

  get router(): Router {
    return this.#formed.state.get('router', 'r1') as Router
  }

  begin(by = 'r1', fingerprint = 'print of r1', next = 'next print'): Outcome {
    const message = create(RouterExtendSchema, {
      routerId: 'r1',
      fingerprint,
      certificates: { client: { pem: 'next pem', fingerprint: next }, serverPem: 'next server' },
    })
    return this.#as(by, CommandKind.ROUTER_EXTEND_BEGIN, toBinary(RouterExtendSchema, message))
  }

  verify(by = 'r1', fingerprint = 'next print'): Outcome {
    const message = create(RouterExtendVerifySchema, { routerId: 'r1', fingerprint })
    const payload = toBinary(RouterExtendVerifySchema, message)
    return this.#as(by, CommandKind.ROUTER_EXTEND_VERIFY, payload)
  }

  #as(routerId: string, kind: CommandKind, payload: Uint8Array): Outcome {
    const actor = createEnrollmentActor({ routerId }, { method: 'channel', address: '' })
    const { outcome } = this.#formed.log.command(kind, payload, { actor })
    if (outcome === null) throw new Error('the command was passed over')
    return outcome
  }
}

describe('router certificates that are extended over the router’s channel', () => {
  test('become valid when the router reports that it has stored them', () => {
    const extending = new Extending()
    expect(extending.begin().ok).toBe(true)
    expect(extending.router).toMatchObject({ fingerprint: 'print of r1', certPem: 'pem of r1' })
    expect(extending.verify().ok).toBe(true)
    expect(extending.router).toMatchObject({
      fingerprint: 'next print',
      certPem: 'next pem',
      serverCertPem: 'next server',
      nextFingerprint: null,
      nextCertPem: null,
      nextServerCertPem: null,
    })
    expect(extending.verify().ok, 'repeated').toBe(true)
  })

  test('are replaced if the router begins the extension again', () => {
    const extending = new Extending()
    extending.begin()
    expect(extending.begin('r1', 'print of r1', 'later print').ok).toBe(true)
    expect(extending.verify()).toMatchObject({ ok: false, code: 'CERT_FAILED_VALIDATION' })
    expect(extending.verify('r1', 'later print').ok).toBe(true)
  })

  test('cannot be requested or confirmed by another router', () => {
    const extending = new Extending()
    expect(extending.begin('r2')).toMatchObject({ code: 'UNAUTHORIZED' })
    extending.begin()
    expect(extending.verify('r2')).toMatchObject({ code: 'UNAUTHORIZED' })
    expect(extending.router.fingerprint).toBe('print of r1')
  })

  test('are refused if the router presents an old certificate, or if the new certificate is in use elsewhere', () => {
    const extending = new Extending()
    expect(extending.begin('r1', 'an old print')).toMatchObject({ code: 'UNAUTHORIZED' })
    expect(extending.begin('r1', 'print of r1', 'print of r2')).toMatchObject({
      code: 'CERT_IN_USE',
    })
  })
})
