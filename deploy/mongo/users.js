// Makes the users of a library, or gives those that are there these passwords and roles. For mongosh, as an
// administrator:
//
//   mongosh "mongodb://admin:...@127.0.0.1:27017/admin" deploy/mongo/users.js
//
// From the environment: TOOLSCRIPT_MONGO_READER_PASSWORD and TOOLSCRIPT_MONGO_WRITER_PASSWORD, and
// TOOLSCRIPT_MONGO_DATABASE where the library's database is not called "knowledge".
//
// `toolscript serve` logs in as toolscript_reader, which can read the three collections and nothing else;
// `toolscript ingest` as toolscript_writer, which can write in this one database. Both are users of this database:
//
//   TOOLSCRIPT_MONGO_URL=mongodb://toolscript_reader:...@127.0.0.1:27017/?authSource=knowledge
//   TOOLSCRIPT_MONGO_WRITER_URL=mongodb://toolscript_writer:...@127.0.0.1:27017/?authSource=knowledge

const named = (name) => {
  if (!process.env[name]) throw new Error(`${name} is not set`);
  return process.env[name];
};

const library = db.getSiblingDB(process.env.TOOLSCRIPT_MONGO_DATABASE || "knowledge");

const reading = {
  privileges: ["sources", "chunks", "extractions"].map((collection) => ({
    resource: { db: library.getName(), collection },
    actions: ["find"],
  })),
  roles: [],
};

if (library.getRole("toolscript_library_reader")) {
  library.updateRole("toolscript_library_reader", reading);
} else {
  library.createRole({ role: "toolscript_library_reader", ...reading });
}

const haveUser = (user, password, role) => {
  const wanted = { pwd: named(password), roles: [{ role, db: library.getName() }] };
  if (library.getUser(user)) {
    library.updateUser(user, wanted);
  } else {
    library.createUser({ user, ...wanted });
  }
};

haveUser("toolscript_reader", "TOOLSCRIPT_MONGO_READER_PASSWORD", "toolscript_library_reader");
haveUser("toolscript_writer", "TOOLSCRIPT_MONGO_WRITER_PASSWORD", "readWrite");
