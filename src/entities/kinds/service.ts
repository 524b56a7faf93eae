import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  roleAttributesField,
  booleanField,
  choiceField,
  computedField,
  integerField,
  nameField,
  idReferencesField,
} from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import {
  configsByTypeSchema,
  dialBindListSchema,
  policyQueryListSchema,
} from '../response-schemas.ts'

export const terminatorStrategies = ['smartrouting', 'weighted', 'random', 'sticky'] as const

/** A service that clients dial and hosts bind. */
export const service = defineEntity({
  name: 'service',
  plural: 'services',
  scope: { field: 'isFabricOnly', value: false },
  isPublished: true,
  operations: {
    client: {
      list: 'session',
      detail: 'session',
      replace: 'admin',
      patch: 'admin',
      delete: 'admin',
    },
    management: managementCrudPermissions('service'),
  },
  callerScope: { through: 'access' },
  fields: markShownInEvents({
    name: nameField(),
    encryptionRequired: booleanField({ required: true, settable: 'create' }),
    terminatorStrategy: choiceField(terminatorStrategies, { otherwise: 'smartrouting' }),
    maxIdleTimeMillis: integerField(),
    configs: idReferencesField('config', 'strip', { nullIfEmpty: true }),
    roleAttributes: roleAttributesField({ nullIfEmpty: true }),
    isFabricOnly: booleanField({ settable: 'never', shown: 'never' }),
    config: computedField({ from: 'configData', by: 'configs' }, configsByTypeSchema),
    permissions: computedField({ from: 'permissions' }, dialBindListSchema),
    postureQueries: computedField({ from: 'policyQueries' }, policyQueryListSchema),
  }),
  listParameters: { client: ['configTypes'], management: ['configTypes', 'asIdentity'] },
  indexes: ['roleAttributes', 'isFabricOnly'],
  symbols: [
    'name',
    'terminatorStrategy',
    'roleAttributes',
    'configs',
    'isFabricOnly',
    { name: 'edgeRouters', list: 'edge-routers' },
    { name: 'terminators', list: 'terminators' },
  ],
  links: ['service-edge-router-policies', 'service-policies', 'terminators', 'configs'],
  lists: {
    configs: { of: 'config', through: 'named', by: 'configs', operationId: 'listServiceConfig' },
    'service-edge-router-policies': {
      of: 'serviceEdgeRouterPolicy',
      through: 'policies',
      by: 'serviceRoles',
    },
    'service-policies': { of: 'servicePolicy', through: 'policies', by: 'serviceRoles' },
    'edge-routers': { of: 'edgeRouter', through: 'policyLinks', by: 'serviceEdgeRouterPolicy' },
    identities: { of: 'identity', through: 'access' },
    terminators: { of: 'terminator', through: 'naming', by: 'serviceId' },
    clientTerminators: {
      of: 'clientTerminator',
      through: 'naming',
      by: 'serviceId',
      api: 'client',
      path: 'terminators',
      operationId: 'listServiceTerminators',
      unknownParent: 'notFound',
    },
  },
  hasRoleFilter: true,
})

export type Service = EntityOf<typeof service>
