import { usernameSchema } from './authenticator.ts'
import { bodyMemberForCreate } from '../body-members.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  choiceField,
  optionalTextField,
  idReferenceField,
  textField,
  timestampField,
} from '../fields.ts'
import { expirySchema } from '../parts/expiry.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'
import {
  nullableReferenceField,
  referenceField,
  referenceWithUrlNameField,
} from '../reference-fields.ts'

const enrollmentMethods = ['ott', 'ottca', 'updb', 'erott', 'trott'] as const
export type EnrollmentMethod = (typeof enrollmentMethods)[number]

const idSchema = { type: 'string', maxLength: 128 } as const
/**
 * Rules of the fields that reference the identity or router to be enrolled, or a CA. These fields
 * are set when the token is created. The enrollment rules check the references, so that faults are
 * reported in the order of those rules.
 */
const subject = { settable: 'proposer', shown: 'whenSet', isJudgedByRules: true } as const
const made = { settable: 'proposer' } as const
const whenSet = { shown: 'whenSet' } as const

/**
 * A one-time token with which an identity or a router obtains its credential; valid until it is
 * used, deleted or expired.
 */
export const enrollment = defineEntity({
  name: 'enrollment',
  plural: 'enrollments',
  isPublished: true,
  operations: {
    management: {
      list: 'enrollment.read',
      create: 'enrollment.create',
      detail: 'enrollment.read',
      delete: 'enrollment.delete',
    },
  },
  fields: markShownInEvents({
    method: choiceField(enrollmentMethods, made),
    ...markHiddenFromEvents({
      /** UUIDv4, the `jti` of the enrollment JWT. */
      token: textField({ ...made, charactersMax: 64, unique: 'token must be unique' }),
      /** The enrollment JWT, signed by the controller that created it. */
      jwt: optionalTextField({ ...made, ...whenSet, charactersMax: 16_384 }),
    }),
    expiresAt: timestampField(made),
    identityId: idReferenceField('identity', 'cascade', subject),
    edgeRouterId: idReferenceField('edgeRouter', 'cascade', subject),
    transitRouterId: idReferenceField('transitRouter', 'cascade', subject),
    /** CA whose certificates an `ottca` enrollment accepts. */
    caId: idReferenceField('ca', 'cascade', subject),
    /** User name of an `updb` enrollment. */
    username: optionalTextField({ ...made, ...whenSet, charactersMax: usernameSchema.maxLength }),
    identity: referenceWithUrlNameField('identity', 'identityId', whenSet),
    edgeRouter: referenceField('edgeRouter', 'edgeRouterId', whenSet),
    transitRouter: referenceField('transitRouter', 'transitRouterId', whenSet),
    ca: nullableReferenceField('ca', 'caId'),
  }),
  body: {
    caId: bodyMemberForCreate(idSchema, 'optional'),
    expiresAt: bodyMemberForCreate(expirySchema, 'required'),
    identityId: bodyMemberForCreate(idSchema, 'required'),
    method: bodyMemberForCreate({ type: 'string', enum: ['ott', 'ottca', 'updb'] }, 'required'),
    username: bodyMemberForCreate(usernameSchema, 'optional'),
  },
  symbols: [
    'token',
    { name: 'identity', field: 'identityId' },
    { name: 'edgeRouter', field: 'edgeRouterId' },
    { name: 'transitRouter', field: 'transitRouterId' },
    'caId',
    'expiresAt',
  ],
  digest: 'state',
})

export type Enrollment = EntityOf<typeof enrollment>
