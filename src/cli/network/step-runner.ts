import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { systemClock } from '../../lib/clock.ts'
import type { RecordApi } from '../client/record-api.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { type RecordKind, recordPath } from '../records/kinds.ts'
import { createdRecordShape, rowShape } from '../records/rows.ts'
import { disabledFields, isAboutSameTime, disabledMinutes } from './disabled-state.ts'
import type { NetworkFileObject } from './network-file.ts'
import { type LiveNetwork, tableForKind } from './live-network.ts'
import type { NetworkStep } from './plan.ts'
import {
  toRequestBody,
  networkFileFields,
  readNetworkFileFields,
  translateReferences,
} from './network-file-fields.ts'
import type { NetworkObject } from './sections.ts'

/** Executes steps one after the other. Later steps can use the ids of created records. */
export class NetworkStepRunner {
  readonly #client: RecordApi
  readonly #live: LiveNetwork
  readonly #made = new Map<string, string>()

  constructor(client: RecordApi, live: LiveNetwork) {
    this.#client = client
    this.#live = live
  }

  /** @throws {ApiRefusal} whose message names the object. */
  async run(step: NetworkStep): Promise<void> {
    const object = step.verb === 'delete' ? step.live : step.wanted
    try {
      if (object.section.kind.id === 'serviceConfig') await this.#serviceConfig(step)
      else await this.#record(step)
    } catch (error) {
      if (!(error instanceof ApiRefusal)) throw error
      const { status, code, field, message } = error
      throw new ApiRefusal(status, code, `cannot ${step.verb} ${object.label}: ${message}`, field)
    }
  }

  async #record(step: NetworkStep): Promise<void> {
    switch (step.verb) {
      case 'create':
        await this.#create(step.wanted)
        return
      case 'update':
        await this.#replace(step.live.id, step.wanted)
        await this.#setDisabled(step.live.id, step.live.fields, step.wanted.fields)
        return
      case 'adopt':
        await this.#adopt(step.wanted)
        return
      case 'delete': {
        const path = recordPath(step.live.section.kind, step.live.id, 'delete')
        await this.#client.ask({ method: 'DELETE', path })
      }
    }
  }

  async #create(wanted: NetworkFileObject): Promise<void> {
    const { kind } = wanted.section
    const body = this.#bodyOf(wanted)
    const request = { method: 'POST', path: `/${kind.plural}`, body } as const
    const { id } = (await this.#client.ask(request, createdRecordShape)).data
    const { name } = wanted.fields
    if (typeof name === 'string') this.#made.set(`${tableForKind(kind.id)} ${name}`, id)
    await this.#setDisabled(id, {}, wanted.fields)
  }

  /**
   * Updates the identity that the router in the file has created. It has the same ID as its router.
   */
  async #adopt(wanted: NetworkFileObject): Promise<void> {
    const { kind } = wanted.section
    const name = String(wanted.fields['name'])
    const id = this.#idOf('edgeRouter', name)
    this.#made.set(`${tableForKind(kind.id)} ${name}`, id)
    const path = recordPath(kind, id, 'detail')
    const { data } = await this.#client.ask({ method: 'GET', path }, rowShape)
    await this.#replace(id, wanted)
    await this.#setDisabled(id, readNetworkFileFields(kind, data), wanted.fields)
  }

  async #replace(id: string, wanted: NetworkFileObject): Promise<void> {
    const { kind } = wanted.section
    const path = recordPath(kind, id, 'patch')
    await this.#client.ask({
      method: 'PUT',
      path,
      body: changeableFields(kind, this.#bodyOf(wanted)),
    })
  }

  /**
   * Enables an identity, or disables it permanently or for a number of minutes. The API changes
   * this state in a separate operation.
   */
  async #setDisabled(id: string, before: JsonObject, after: JsonObject): Promise<void> {
    const isSame = disabledFields.every((name) => before[name] === after[name])
    if (isSame || isAboutSameTime(before['disabledUntil'] ?? null, after['disabledUntil'] ?? null))
      return
    const path = `/identities/${encodeURIComponent(id)}`
    const durationMinutes = disabledMinutes(after, await this.#nowMs(path))
    if (durationMinutes === null) {
      await this.#client.ask({ method: 'POST', path: `${path}/enable` })
    } else {
      await this.#client.ask({ method: 'POST', path: `${path}/disable`, body: { durationMinutes } })
    }
  }

  /**
   * The controller's current time, because the controller counts the minutes and its clock may
   * differ from the clock of this host.
   */
  async #nowMs(path: string): Promise<number> {
    const { header } = await this.#client.ask({ method: 'GET', path })
    const ms = Date.parse(header('date') ?? '')
    return Number.isNaN(ms) ? systemClock.nowMs() : ms
  }

  async #serviceConfig(step: NetworkStep): Promise<void> {
    if (step.verb === 'update' || step.verb === 'adopt') return
    const { fields } = step.verb === 'delete' ? step.live : step.wanted
    const id = this.#idOf('identity', String(fields['identity']))
    const serviceId = this.#idOf('service', String(fields['service']))
    const configId = this.#idOf('config', String(fields['config']))
    const method = step.verb === 'create' ? 'POST' : 'DELETE'
    const path = `/identities/${encodeURIComponent(id)}/service-configs`
    await this.#client.ask({ method, path, body: [{ serviceId, configId }] })
  }

  #bodyOf({ section, fields }: NetworkObject): JsonObject {
    const ids = translateReferences(section.kind, fields, (to, name) => this.#idOf(to, name))
    return toRequestBody(section.kind, ids)
  }

  #idOf(kind: string, name: string): string {
    const known = (of: string): string | undefined =>
      this.#made.get(`${tableForKind(of)} ${name}`) ?? this.#live.idOf(of, name)
    // A step before this one may have created the identity of a router, which has the router's ID.
    const id = known(kind) ?? (kind === 'identity' ? known('edgeRouter') : undefined)
    // The record existed when the steps were planned, but another client has deleted it.
    if (id === undefined) throw new ApiRefusal(404, 'NOT_FOUND', `${name} does not exist any more`)
    return id
  }
}

/** The fields of a body that can be changed after a record has been created. */
export function changeableFields(kind: RecordKind, body: JsonObject): JsonObject {
  const fixed = networkFileFields(kind).filter(({ settable }) => settable === 'create')
  const names = new Set(fixed.map(({ name }) => name))
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.has(name)))
}
