import { describe, expect, test } from 'vitest'
import { traceMsMax } from '../../src/ports/identity-traces.ts'
import { management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()

const of = (id: string): string => `${management}/identities/${id}`

describe('for an identity without posture reports,', () => {
  test('the posture data has every section, and each section is empty', async () => {
    const reply = await root.get(`${of('alice-id')}/posture-data`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toMatchObject({
      apiSessionPostureData: {},
      domain: { domain: '', postureCheckId: '', timedOut: false },
      mac: { addresses: [] },
      os: { type: '', version: '', build: '' },
      processes: [],
    })
    expect(reply.body.data).toHaveProperty('apiSessionPostureData', {})
    expect((await root.get(`${of('nobody')}/posture-data`)).status).toBe(404)
  })

  test('the list of failed service requests is empty', async () => {
    const reply = await root.get(`${of('alice-id')}/failed-service-requests`)
    expect(reply.body).toMatchObject({ data: [], meta: { pagination: { totalCount: 0 } } })
    expect((await root.get(`${of('nobody')}/failed-service-requests`)).status).toBe(404)
  })

  test('an administrator’s request to remove MFA succeeds although the identity has no MFA', async () => {
    expect((await root.call('DELETE', `${of('alice-id')}/mfa`)).status).toBe(200)
    expect((await root.call('DELETE', `${of('nobody')}/mfa`)).status).toBe(404)
  })
})

describe('the trace of an identity', () => {
  const trace = (body: object, id = 'alice-id'): Promise<Reply> =>
    root.call('PUT', `${of(id)}/trace`, body)

  test('lasts for the given time, with the given trace id or a new one', async () => {
    const named = await trace({
      enabled: true,
      duration: '1h30m',
      traceId: 'mine',
      channels: ['a'],
    })
    expect(named.status, named.text).toBe(200)
    const until = new Date(controller.clock.nowMs() + 90 * 60_000).toISOString()
    expect(named.body.data).toEqual({ enabled: true, traceId: 'mine', until })
    const unnamed = await trace({ enabled: true, duration: '10m' })
    expect((unnamed.body.data as { traceId: string }).traceId).toMatch(/^.{12}$/)
  })

  test('can be stopped, and the response still contains the trace id', async () => {
    await trace({ enabled: true, duration: '1m', traceId: 'mine' })
    expect((await trace({ enabled: false })).body.data).toMatchObject({
      enabled: false,
      traceId: 'mine',
    })
    expect((await trace({})).body.data).toMatchObject({ enabled: false, traceId: '' })
    await trace({ enabled: true, duration: '1s', traceId: 'short' })
    controller.clock.advance(1000)
    expect((await trace({ enabled: false })).body.data).toMatchObject({ traceId: '' })
  })

  test('covers the requested channels, or both channels by default', async () => {
    const channelsOf = async (channels?: readonly string[]): Promise<number | undefined> => {
      await trace({
        enabled: true,
        duration: '1m',
        ...(channels === undefined ? {} : { channels }),
      })
      return controller.parts.traces.of('alice-id')?.channels
    }
    expect(await channelsOf()).toBe(3)
    expect(await channelsOf([])).toBe(3)
    expect(await channelsOf(['all'])).toBe(3)
    expect(await channelsOf(['selectPath'])).toBe(1)
    expect(await channelsOf(['establishPath', 'no such channel'])).toBe(2)
    await trace({ enabled: false })
    expect(controller.parts.traces.of('alice-id')).toBe(null)
  })

  test.each([['soon'], [''], [undefined], ['10'], ['-1m'], ['0'], [`${traceMsMax + 1}ms`]])(
    'is refused if its duration is %j',
    async (duration) => {
      const reply = await trace({ enabled: true, duration })
      expect(reply.status).toBe(400)
      expect(reply.body.error?.cause?.['field']).toBe('duration')
    },
  )

  test('is refused for an unknown identity', async () => {
    expect((await trace({ enabled: true, duration: '1m' }, 'nobody')).status).toBe(404)
  })
})
