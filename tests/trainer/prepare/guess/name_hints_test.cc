#include "trainer/prepare/guess/name_hints.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

TEST(NameHintsTest, LabelsAreNamedInManyWays) {
  for (const char* name : {"label", "Clicked on Ad", "is_attributed", "isClick", "converted",
                           "conversion", "TARGET", "click_bool", "Purchased", "Churn", "y",
                           "Exited", "isFraud", "has_purchased", "income", "user_clicked"}) {
    EXPECT_EQ(LabelNameOf(name), LabelName::kYes) << name;
  }
  for (const char* name : {"last_click_time", "clicks_7d", "default.payment.next.month"}) {
    EXPECT_EQ(LabelNameOf(name), LabelName::kPartly) << name;
  }
  for (const char* name : {"gender", "user", "is_weekend", "", "c1", "yellow"}) {
    EXPECT_EQ(LabelNameOf(name), LabelName::kNo) << name;
  }
  EXPECT_TRUE(IsLabelNameAlone("is_click"));
  EXPECT_FALSE(IsLabelNameAlone("class"));
}

TEST(NameHintsTest, QuantitiesAndThings) {
  for (const char* name : {"age", "item_price", "num_users", "hours_per_week", "I5", "pageCount"}) {
    EXPECT_TRUE(IsQuantityName(name)) << name;
    EXPECT_FALSE(IsThingName(name)) << name;
  }
  for (const char* name : {"user_id", "itemID", "adid", "zip", "C14", "age_group", "store_nbr"}) {
    EXPECT_TRUE(IsThingName(name)) << name;
  }
  for (const char* name : {"x7", "feature_9", "paid"}) EXPECT_FALSE(IsThingName(name)) << name;
}

TEST(NameHintsTest, TimesRatingsAndLists) {
  for (const char* name : {"timestamp", "created_at", "eventTime", "Date"}) {
    EXPECT_TRUE(IsTimeName(name)) << name;
  }
  EXPECT_FALSE(IsTimeName("sentiment"));
  EXPECT_TRUE(IsBirthName("date_of_birth"));
  EXPECT_TRUE(IsRatingName("user_rating"));
  EXPECT_FALSE(IsRatingName("stars_hotel"));
  EXPECT_FALSE(IsRatingName("user"));
  EXPECT_TRUE(IsSeriesName("hist_items"));
  EXPECT_FALSE(IsSeriesName("tags"));
  EXPECT_TRUE(IsListName("tags"));
  EXPECT_TRUE(IsPlaceName("country_code"));
}

}  // namespace
}  // namespace elastor
