import {
  ModelAction,
  type ModelConfig,
  type ModelConfigType,
  type ModelEvent,
  type ModelIdentity,
  ModelPolicyType,
  type ModelPostureCheck,
  type ModelPublicKey,
  ModelRelatedType,
  type ModelRevocation,
  type ModelRouter,
  type ModelService,
  type ModelServicePolicyChange,
} from '../../../proto/gen/router_pb.ts'
import { estimateMemoryBytes } from './estimate-memory-bytes.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'

export interface ModelLimits {
  readonly modelRecordsMax: number
  readonly modelMembersMax: number
  readonly modelBytesMax: number
}

/** A policy with the IDs of its identities and services, which controllers determine. */
interface FollowedPolicy {
  readonly id: string
  readonly name: string
  readonly type: 'Dial' | 'Bind'
  readonly services: ReadonlySet<string>
  readonly identities: ReadonlySet<string>
  readonly postureChecks: ReadonlySet<string>
}

interface Policy extends FollowedPolicy {
  name: string
  type: 'Dial' | 'Bind'
  readonly services: Set<string>
  readonly identities: Set<string>
  readonly postureChecks: Set<string>
}

/** Estimated bytes of each ID in a policy and of each index entry. */
const MEMBER_BYTES = 64

/**
 * The records of the data model, and the access that they grant. Other classes handle the
 * subscription and the messages from controllers.
 */
export class ModelContents {
  readonly identities = new ModelTable<ModelIdentity>()
  readonly services = new ModelTable<ModelService>()
  readonly configs = new ModelTable<ModelConfig>()
  readonly configTypes = new ModelTable<ModelConfigType>()
  readonly routers = new ModelTable<ModelRouter>()
  readonly postureChecks = new ModelTable<ModelPostureCheck>()
  readonly revocations = new Map<string, ModelRevocation>()
  /** Public keys by key ID. */
  readonly publicKeys = new Map<string, ModelPublicKey>()
  readonly #policies = new Map<string, Policy>()
  /**
   * IDs of the policies that contain an identity or a service, by the ID of that identity or
   * service.
   */
  readonly #policiesOfIdentity = new Map<string, Set<string>>()
  readonly #policiesOfService = new Map<string, Set<string>>()
  #members = 0
  #otherBytes = 0

  get policies(): ReadonlyMap<string, FollowedPolicy> {
    return this.#policies
  }

  get recordCount(): number {
    return (
      this.#tables().reduce((sum, { size }) => sum + size, 0) +
      this.revocations.size +
      this.publicKeys.size +
      this.#policies.size
    )
  }

  get memberCount(): number {
    return this.#members
  }

  /** Estimated bytes of all records. */
  get byteCount(): number {
    const records = this.#tables().reduce((sum, { bytes }) => sum + bytes, 0)
    return records + this.#otherBytes + this.#members * MEMBER_BYTES
  }

  /** Why the model is too large to be kept; null if it is small enough. */
  excess(limits: ModelLimits): string | null {
    const { modelRecordsMax, modelMembersMax, modelBytesMax } = limits
    if (this.recordCount > modelRecordsMax) return `more than ${modelRecordsMax} records`
    if (this.#members > modelMembersMax) return `more than ${modelMembersMax} members of policies`
    return this.byteCount > modelBytesMax ? `more than ${modelBytesMax} bytes` : null
  }

  /** Applies one change; ignores records of unknown kinds. */
  apply({ action, model }: ModelEvent): void {
    const isDelete = action === ModelAction.DELETE
    switch (model.case) {
      case 'identity':
        this.#put(this.identities, model.value, isDelete)
        if (isDelete) this.#forgetMember(this.#policiesOfIdentity, model.value.id, 'identities')
        return
      case 'service':
        this.#put(this.services, model.value, isDelete)
        if (isDelete) this.#forgetMember(this.#policiesOfService, model.value.id, 'services')
        return
      case 'config':
        return this.#put(this.configs, model.value, isDelete)
      case 'configType':
        return this.#put(this.configTypes, model.value, isDelete)
      case 'router':
        return this.#put(this.routers, model.value, isDelete)
      case 'postureCheck':
        this.#put(this.postureChecks, model.value, isDelete)
        if (isDelete) this.#forgetCheck(model.value.id)
        return
      case 'publicKey':
        return this.#putOther(this.publicKeys, model.value.kid, isDelete ? null : model.value)
      case 'revocation':
        return this.#putOther(this.revocations, model.value.id, isDelete ? null : model.value)
      case 'servicePolicy':
        return this.#putPolicy(model.value, isDelete)
      case 'servicePolicyChange':
        return this.#changeMembers(model.value)
      case undefined:
    }
  }

  policiesOf(identityId: string, type: 'Dial' | 'Bind'): readonly FollowedPolicy[] {
    const found: FollowedPolicy[] = []
    for (const id of this.#policiesOfIdentity.get(identityId) ?? []) {
      const policy = this.#policies.get(id)
      if (policy?.type === type) found.push(policy)
    }
    return found
  }

  /** The policies that permit an identity to use a service. */
  policiesBetween(
    identityId: string,
    serviceId: string,
    type: 'Dial' | 'Bind',
  ): readonly FollowedPolicy[] {
    return this.policiesOf(identityId, type).filter(({ services }) => services.has(serviceId))
  }

  /**
   * Configs of a service for an identity, by name of the config type. Configs that the identity has
   * for this service replace those of the service.
   */
  configsOf(service: ModelService, identity: ModelIdentity | undefined): Map<string, ModelConfig> {
    const own = Object.values(identity?.serviceConfigs[service.id]?.configs ?? {})
    const found = new Map<string, ModelConfig>()
    for (const id of [...service.configs, ...own]) {
      const config = this.configs.get(id)
      const type = config === undefined ? undefined : this.configTypes.get(config.typeId)
      if (config !== undefined && type !== undefined) found.set(type.name, config)
    }
    return found
  }

  #tables(): readonly { readonly size: number; readonly bytes: number }[] {
    const { identities, services, configs, configTypes, routers, postureChecks } = this
    return [identities, services, configs, configTypes, routers, postureChecks]
  }

  #put<T extends { readonly id: string; readonly name: string }>(
    table: ModelTable<T>,
    record: T,
    isDelete: boolean,
  ): void {
    if (isDelete) table.delete(record.id)
    else if (record.id !== '') table.set(record)
  }

  #putOther<T extends object>(map: Map<string, T>, id: string, record: T | null): void {
    const before = map.get(id)
    if (before !== undefined) this.#otherBytes -= estimateMemoryBytes(before)
    if (record === null || id === '') {
      map.delete(id)
      return
    }
    map.set(id, record)
    this.#otherBytes += estimateMemoryBytes(record)
  }

  #putPolicy(
    { id, name, policyType }: { id: string; name: string; policyType: ModelPolicyType },
    isDelete: boolean,
  ): void {
    const known = this.#policies.get(id)
    const isKnownType =
      policyType === ModelPolicyType.DIAL_POLICY || policyType === ModelPolicyType.BIND_POLICY
    // A policy of an unknown type permits nothing.
    if (isDelete || !isKnownType) {
      if (known !== undefined) this.#forgetPolicy(known)
      return
    }
    const type = policyType === ModelPolicyType.DIAL_POLICY ? 'Dial' : 'Bind'
    if (known !== undefined) {
      known.name = name
      known.type = type
      return
    }
    if (id === '') return
    const sets = { services: new Set<string>(), identities: new Set<string>() }
    this.#policies.set(id, { id, name, type, ...sets, postureChecks: new Set() })
  }

  #forgetPolicy(policy: Policy): void {
    for (const id of policy.identities) removeFromSet(this.#policiesOfIdentity, id, policy.id)
    for (const id of policy.services) removeFromSet(this.#policiesOfService, id, policy.id)
    const { identities, services, postureChecks } = policy
    this.#members -= identities.size + services.size + postureChecks.size
    this.#policies.delete(policy.id)
  }

  #changeMembers(change: ModelServicePolicyChange): void {
    const policy = this.#policies.get(change.policyId)
    if (policy === undefined) return
    const { members, index } = this.#membersOf(policy, change.relatedEntityType)
    if (members === null) return
    for (const id of change.relatedEntityIds) {
      if (change.add === members.has(id)) continue
      if (change.add) members.add(id)
      else members.delete(id)
      this.#members += change.add ? 1 : -1
      if (index === null) continue
      if (change.add) addToSet(index, id, policy.id)
      else removeFromSet(index, id, policy.id)
    }
  }

  /**
   * The identities, services or posture checks of a policy; `members` is null for an unknown kind,
   * and `index` for a kind without an index.
   */
  #membersOf(
    policy: Policy,
    type: ModelRelatedType,
  ): { members: Set<string> | null; index: Map<string, Set<string>> | null } {
    if (type === ModelRelatedType.RELATED_SERVICE) {
      return { members: policy.services, index: this.#policiesOfService }
    }
    if (type === ModelRelatedType.RELATED_IDENTITY) {
      return { members: policy.identities, index: this.#policiesOfIdentity }
    }
    const isCheck = type === ModelRelatedType.RELATED_POSTURE_CHECK
    return { members: isCheck ? policy.postureChecks : null, index: null }
  }

  /**
   * Removes a deleted record from its policies, because controllers do not report these changes of
   * the policies.
   */
  #forgetMember(index: Map<string, Set<string>>, id: string, of: 'identities' | 'services'): void {
    for (const policyId of index.get(id) ?? []) {
      if (this.#policies.get(policyId)?.[of].delete(id) === true) this.#members -= 1
    }
    index.delete(id)
  }

  #forgetCheck(id: string): void {
    for (const { postureChecks } of this.#policies.values()) {
      if (postureChecks.delete(id)) this.#members -= 1
    }
  }
}

/** Records of one kind, by ID and by name. */
class ModelTable<T extends { readonly id: string; readonly name: string }> {
  readonly #byId = new Map<string, T>()
  /**
   * Two records may have the same name for a moment, while the name moves from one to the other;
   * the index contains the later one.
   */
  readonly #idByName = new Map<string, string>()
  #bytes = 0

  get size(): number {
    return this.#byId.size
  }

  /** Estimated bytes of the records. */
  get bytes(): number {
    return this.#bytes
  }

  get(id: string): T | undefined {
    return this.#byId.get(id)
  }

  named(name: string): T | undefined {
    const id = this.#idByName.get(name)
    return id === undefined ? undefined : this.#byId.get(id)
  }

  values(): IterableIterator<T> {
    return this.#byId.values()
  }

  set(record: T): void {
    this.delete(record.id)
    this.#byId.set(record.id, record)
    this.#idByName.set(record.name, record.id)
    this.#bytes += estimateMemoryBytes(record)
  }

  delete(id: string): void {
    const known = this.#byId.get(id)
    if (known === undefined) return
    this.#byId.delete(id)
    if (this.#idByName.get(known.name) === id) this.#idByName.delete(known.name)
    this.#bytes -= estimateMemoryBytes(known)
  }
}
