import { expect } from 'vitest'
import { decodeJwt, type JWTPayload } from 'jose'
import { type CallerOf, management } from './caller.ts'

export type Detail = Readonly<Record<string, unknown>>

/** Creates a record in a collection. @returns its ID. */
export async function made(caller: CallerOf, url: string, body: unknown): Promise<string> {
  const reply = await caller.call('POST', url, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

export async function shown(caller: CallerOf, url: string): Promise<Detail> {
  const reply = await caller.get(url)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Detail
}

export async function listed(caller: CallerOf, url: string): Promise<readonly Detail[]> {
  const reply = await caller.get(url)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as readonly Detail[]
}

export function newIdentity(caller: CallerOf, name: string, rest: Detail = {}): Promise<string> {
  const body = { name, type: 'Device', isAdmin: false, ...rest }
  return made(caller, `${management}/identities`, body)
}

export function newService(caller: CallerOf, name: string, rest: Detail = {}): Promise<string> {
  return made(caller, `${management}/services`, { name, encryptionRequired: true, ...rest })
}

export function claimsOf(jwt: unknown): JWTPayload {
  return decodeJwt(String(jwt))
}
