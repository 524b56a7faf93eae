import type { NamedSchema } from '../../entities/operations.ts'
import { emptySchema } from '../../entities/schema.ts'
import {
  dateTimeSchema,
  linksSchema,
  text,
  openObjectSchema,
  closedObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'

/** Schemas of the envelope of responses, and of the fields that all records have. */

export const integer = { type: 'integer' } as const
export const texts = { type: 'array', items: text } as const

export const emptyBodySchema: NamedSchema = { name: 'empty', schema: emptySchema }

export const responseMetaSchema: NamedSchema = {
  name: 'meta',
  schema: closedObjectSchema(
    {
      apiEnrollmentVersion: text,
      apiVersion: text,
      detachedFrom: arraySchema(
        openObjectSchema({ entity: text, field: text, ids: texts, totalCount: integer }),
      ),
      filterableFields: texts,
      ignoredFields: texts,
      warnings: texts,
      pagination: openObjectSchema({ limit: integer, offset: integer, totalCount: integer }),
    },
    ['detachedFrom', 'filterableFields', 'ignoredFields', 'pagination', 'warnings'],
  ),
}

export const errorEnvelopeSchema: NamedSchema = {
  name: 'apiErrorEnvelope',
  schema: closedObjectSchema({
    error: closedObjectSchema(
      {
        code: text,
        message: text,
        requestId: text,
        cause: {
          type: 'object',
          properties: {
            field: text,
            reason: text,
            value: {},
            code: text,
            message: text,
            data: { type: 'object' },
          },
        },
        data: { type: 'object' },
      },
      ['cause', 'data'],
    ),
    meta: responseMetaSchema.schema,
  }),
}

export const baseRecordProperties = {
  _links: linksSchema,
  createdAt: dateTimeSchema,
  id: text,
  tags: { type: 'object' },
  updatedAt: dateTimeSchema,
} as const
export const baseRecordRequired = ['_links', 'createdAt', 'id', 'updatedAt'] as const
